// Command bench measures what this runtime costs, each figure as a ratio to a
// baseline that the same run measures: a machine that is slow or busy is so for
// both. It prints a table and exits 1 when a figure falls short.
//
//	go run ./bench            # all
//	go run ./bench -only beat,child
//
// It is no part of the tests: it takes a minute and wants a machine to itself. One
// file measures one thing; start reading here.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ashlar"
)

// figure is one line of the table.
type figure struct {
	what     string
	asked    float64
	least    bool // asked is the least, not the most
	measured float64
	unit     string // "" for a ratio
	detail   string
	skipped  string // why it was not measured
}

func (f figure) ok() bool {
	if f.least {
		return f.measured >= f.asked
	}
	return f.measured <= f.asked
}

// place is where a measurement works: a folder of its own, and the binary.
type place struct {
	dir    string
	binary string
}

// sub gives a new folder.
func (p place) sub(name string) (string, error) {
	dir := filepath.Join(p.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}

var measurements = []struct {
	name string
	run  func(place) ([]figure, error)
}{
	{"beat", beat},
	{"store", appends},
	{"many", processAppends},
	{"tasks", tasks},
	{"process", processes},
	{"tools", toolBeats},
	{"policy", policies},
	{"fold", folds},
	{"children", supervised},
	{"growth", growth},
	{"replay", replays},
	{"verify", verifies},
	{"child", trivialChild},
}

func main() {
	ashlar.Reexec()
	if len(os.Args) > 2 && os.Args[1] == peakArg {
		os.Exit(bePeak(os.Args[2:]))
	}
	if len(os.Args) == 3 && os.Args[1] == appendArg {
		os.Exit(beAppender(os.Args[2]))
	}
	only := flag.String("only", "", "comma-separated `names`: beat, store, many, tasks, process, tools, policy, fold, children, growth, replay, verify, child")
	keep := flag.String("dir", "", "work in this `folder`, on the disk to be measured, and keep it")
	flag.Parse()
	code, err := run(*only, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func run(only, dir string) (int, error) {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "ashlar-bench-"); err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
	}
	p := place{dir: dir, binary: filepath.Join(dir, "ashlar")}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", p.binary, "ashlar/cmd/ashlar")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building ashlar: %w\n%s", err, out)
	}
	fmt.Printf("%-62s %9s %9s  %s\n", "", "asked", "measured", "")
	code := 0
	for _, m := range measurements {
		if only != "" && !strings.Contains(","+only+",", ","+m.name+",") {
			continue
		}
		figures, err := m.run(p)
		if err != nil {
			return 1, fmt.Errorf("%s: %w", m.name, err)
		}
		for _, f := range figures {
			f.print()
			if f.skipped == "" && !f.ok() {
				code = 1
			}
		}
	}
	return code, nil
}

func (f figure) print() {
	if f.skipped != "" {
		fmt.Printf("%-62s %9s %9s  skipped: %s\n", f.what, "", "", f.skipped)
		return
	}
	sign, verdict := "≤", "ok"
	if f.least {
		sign = "≥"
	}
	if !f.ok() {
		verdict = "FALLS SHORT"
	}
	fmt.Printf("%-62s %9s %9s  %-11s  %s\n", f.what,
		fmt.Sprintf("%s %.4g%s", sign, f.asked, f.unit), fmt.Sprintf("%.4g%s", f.measured, f.unit), verdict, f.detail)
}
