package vm

import "time"

// Bounds of a script, each listed by `ashlar api limits`.
const (
	MaxStringBytes  = 64 << 20               // one string made by a builtin
	MaxSourceBytes  = 4 << 20                // source of one chunk
	MaxNesting      = 200                    // brackets and blocks of source, checked before the parser
	MaxDepth        = 128                    // of a value that crosses
	DefaultHeap     = 2 << 30                // bytes of live heap before the watchdog ends the run
	InterruptGrace  = 250 * time.Millisecond // from interrupt to cut
	HardGrace       = 20 * time.Millisecond  // the same, for a process far over its memory
	HeapSamplePause = 5 * time.Millisecond
)
