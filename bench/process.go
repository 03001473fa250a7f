package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const starts = 25

// processes compares a whole process with a hello block to another runtime's empty
// one, and a run with one beat to the hello block. They take turns, so that a busy
// moment meets all.
func processes(p place) ([]figure, error) {
	m, err := startModel(func(int) (string, string, string) { return "hello yourself", "", "" })
	if err != nil {
		return nil, err
	}
	defer m.close()
	dir, err := p.sub("process")
	if err != nil {
		return nil, err
	}
	hello, one := filepath.Join(dir, "hello.lua"), filepath.Join(dir, "one.lua")
	if err := errors.Join(os.WriteFile(hello, []byte(`return "hello"`), 0o600), os.WriteFile(one, []byte(`
local r = require("agent").run({ prompt = "hello" })
if not r.ok then error(r.error) end
return r.content`), 0o600)); err != nil {
		return nil, err
	}
	node, missing := exec.LookPath("node")
	commands := [][]string{{p.binary, "run", "-q", "-s", hello}, {p.binary, "run", "-q", "-s", one}}
	if missing == nil {
		commands = append(commands, []string{node, "-e", "0"})
	}
	times := make([][]time.Duration, len(commands))
	for i := range starts + 2 {
		for k, argv := range commands {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Dir, cmd.Env = dir, environ(dir, m.url)
			if k == 2 {
				cmd.Env = nil // as it is typed here, with what this machine gives it
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			began := time.Now()
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%v: %w %s", argv, err, stderr.String())
			}
			if i >= 2 { // the first make the home and fill the page cache
				times[k] = append(times[k], time.Since(began))
			}
		}
	}
	helloTime, oneTime := median(times[0]), median(times[1])
	figures := []figure{{what: "a hello block as a process against node -e 0", asked: 0.4, skipped: "there is no node here"}}
	if missing == nil {
		nodeTime := median(times[2])
		figures[0] = figure{what: figures[0].what, asked: 0.4, measured: float64(helloTime) / float64(nodeTime),
			detail: fmt.Sprintf("%.1f ms against %.1f ms", ms(helloTime), ms(nodeTime))}
	}
	peak, err := peakOf(dir, m.url, commands[0])
	if err != nil {
		return nil, err
	}
	return append(figures,
		figure{what: "its largest resident memory", asked: 35, measured: float64(peak) / (1 << 20), unit: " MiB"},
		figure{what: "a run of one beat against the hello block", asked: 1.6, measured: float64(oneTime) / float64(helloTime),
			detail: fmt.Sprintf("%.1f ms against %.1f ms", ms(oneTime), ms(helloTime))}), nil
}

// peakArg makes this program a small parent that prints the largest resident memory
// of a command: a child's figure begins with its parent's.
const peakArg = "peak"

func bePeak(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10)
	return 0
}

func peakOf(dir, url string, argv []string) (int64, error) {
	var most int64
	for range 5 {
		cmd := exec.Command(os.Args[0], append([]string{peakArg}, argv...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, environ(dir, url), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}
