package tree

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MarkerName is the environment variable whose value says which command a
// process descends from.
const MarkerName = "ASHLAR_PROC"

// Scope says which processes belong together. The zero Scope holds none.
type Scope struct {
	// Path is the value of the marker. A process belongs when its own value is
	// Path, or begins with Path and then "." (a command of this starter) or "/" (a
	// command of a host that itself runs under this one).
	Path string
	// FirstTag and LastTag bound the tags that belong, both included; zero is no
	// tag.
	FirstTag, LastTag uint64
	// Below is a process all of whose descendants belong, without itself; zero is
	// none.
	Below int
}

// Process is one process as it was at one look.
type Process struct {
	PID, Parent int
	State       byte   // as in /proc/PID/stat: R S D T t Z X I
	Start       uint64 // clock ticks since boot; with PID it names a process for good
}

// dead reports whether the process runs no more: it waits to be reaped.
func (p Process) dead() bool { return p.State == 'Z' || p.State == 'X' }

// stopped reports whether the process can do nothing until somebody continues it.
func (p Process) stopped() bool { return p.State == 'T' || p.State == 't' }

// Members lists the processes that belong, dead ones included, in the order of
// their numbers. What vanishes during the look is left out.
func (s Scope) Members() []Process {
	all := processes()
	self := os.Getpid()
	member := make(map[int]bool)
	for _, p := range all {
		if p.PID != self && (p.Parent == s.Below && s.Below != 0 || s.claims(p.PID)) {
			member[p.PID] = true
		}
	}
	// Children of members belong. A parent may have a higher number than its child
	// (numbers wrap around, orphans are handed over), so go on until nothing changes.
	for grown := len(member) > 0; grown; {
		grown = false
		for _, p := range all {
			if p.PID != self && !member[p.PID] && member[p.Parent] {
				member[p.PID], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p Process) bool { return !member[p.PID] })
}

// claims reports whether the process carries the scope's tag or marker.
func (s Scope) claims(pid int) bool {
	if tag := Tag(pid); tag != 0 && s.FirstTag <= tag && tag <= s.LastTag {
		return true
	}
	if s.Path == "" {
		return false
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		value, found := bytes.CutPrefix(entry, []byte(MarkerName+"="))
		if found {
			rest, ours := strings.CutPrefix(string(value), s.Path)
			return ours && (rest == "" || rest[0] == '.' || rest[0] == '/')
		}
	}
	return false
}

// Tag reads a process's tag; 0 when it has none, is gone, or may not be asked.
func Tag(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}

// SetTag gives the calling process a tag, which it hands down to every child that
// it forks from now on. It fails where the system has no such limit, or where the
// limit was lowered before; marker and parenthood then have to do alone.
func SetTag(tag uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit); err != nil {
		return err
	}
	limit.Cur = tag
	return unix.Setrlimit(unix.RLIMIT_RTTIME, &limit)
}

// processes lists every process of the machine that /proc shows.
func processes() []Process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what could be read before an error is still worth having
	all := make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return a.PID - b.PID })
	return all
}

// look reads one process; false when it is gone.
func look(pid int) (Process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parseStat(pid, stat)
}

// parseStat reads the fields of a stat line that count here. The second field is
// the program's name in parentheses and may hold anything, parentheses and spaces
// included, so the rest starts after the last one.
func parseStat(pid int, stat []byte) (Process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Process{}, false
	}
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22 of proc(5), from the state on
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= start || len(fields[state]) != 1 {
		return Process{}, false
	}
	p := Process{PID: pid, State: fields[state][0]}
	var err error
	if p.Parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return Process{}, false
	}
	if p.Start, err = strconv.ParseUint(string(fields[start]), 10, 64); err != nil {
		return Process{}, false
	}
	return p, true
}
