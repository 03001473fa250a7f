// Package scripttest holds the tests of the namespaces as scripts see them: small Lua
// scripts in the real engine, over the real file system, real commands and loopback
// servers. There is nothing here but tests.
package scripttest
