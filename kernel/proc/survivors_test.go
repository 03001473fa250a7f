//go:build linux

package proc_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var sleepers atomic.Int64

// sleeper gives a command line that sleeps for hours, and which nothing else on
// this machine has: survivors finds its processes by it, whatever they shed.
func sleeper() string {
	return fmt.Sprintf("sleep 9%d.%d", os.Getpid(), sleepers.Add(1))
}

// survivors lists the processes that run a sleeper.
func survivors(line string) (pids []int) {
	want := []byte(strings.ReplaceAll(line, " ", "\x00") + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, want) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits for what another process does in its own time.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

// mustBeGone fails when a sleeper still runs.
func mustBeGone(t testing.TB, line string) {
	t.Helper()
	if pids := survivors(line); len(pids) > 0 {
		t.Errorf("%q survives as %v", line, pids)
	}
}

// escapes are the ways by which a process tries to outlive its command; %s is the
// sleeper. Each leaves it running and then goes on.
var escapes = map[string]string{
	"background":        `%s & `,
	"session":           `setsid %s & `,
	"environment":       `env -i %s & `,
	"double fork":       `( ( %s & ) & ); `,
	"all of them":       `( ( setsid env -i %s & ) & ); `,
	"ignores signals":   `( trap '' TERM INT HUP; exec %s ) & `,
	"stopped":           `%s & until grep -q ^sleep /proc/$!/cmdline; do :; done; kill -STOP $!; `,
	"keeps no terminal": `nohup setsid %s & `,
}

// children lists the direct children of a process, with their states.
func children(parent int) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if fields[1] == strconv.Itoa(parent) {
			list = append(list, strings.TrimSpace(string(stat)))
		}
	}
	return list
}
