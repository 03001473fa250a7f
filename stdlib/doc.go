// Package stdlib lists the syscall modules. Each namespace is a package below
// this one that declares a vm.Module; a module is written once and bound to every
// script language by its engine.
//
// It may import vm and kernel, never a script engine, and its packages never
// import one another except the shared decoder http/sse. A new namespace is a new
// folder and one line in modules.go.
package stdlib
