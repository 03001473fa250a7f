// Package embedded holds the Lua modules that are baked into the binary: the
// kernel's Lua half with its shapes (knl, knl_adapter, knl_types, lshape: sealed), the
// packs of values and loops for it (policy, supervisor), the wire translations
// (llm_proto) and the agent that is made to be copied.
//
// It holds sources and their names, and no behaviour. It must never import
// anything of this repository. Each module opens with a comment that is its
// contract; start reading in knl/init.lua, then knl/beat.lua.
package embedded
