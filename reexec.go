package ashlar

import "ashlar/kernel/proc/guard"

// Reexec returns at once, unless this process was started as the guard of another
// one's child processes: then it does that work and never returns. Call it first in
// main and in TestMain.
func Reexec() { guard.Main() }
