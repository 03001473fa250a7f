package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// processWriters is how many processes append to one store at once.
const processWriters = 16

// appendArg makes this program a process that appends to a store for a while and prints
// how many events that were: appendArg PATH.
const appendArg = "append"

func beAppender(path string) int {
	events, _, err := appendFor(path, 1, 3*appendsTime)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(events)
	return 0
}

// processAppends compares many processes that append to one store with one: none may
// fail, and waiting for one another must cost little.
func processAppends(p place) ([]figure, error) {
	dir, err := p.sub("many")
	if err != nil {
		return nil, err
	}
	var one, many int64
	for round := range 2 { // they take turns
		n, err := appenders(filepath.Join(dir, fmt.Sprint("one", round, ".db")), 1)
		if err != nil {
			return nil, err
		}
		one += n
		if n, err = appenders(filepath.Join(dir, fmt.Sprint("many", round, ".db")), processWriters); err != nil {
			return nil, err
		}
		many += n
	}
	return []figure{{what: "16 processes appending to one store, their rate against one's", asked: 0.8, least: true,
		measured: float64(many) / float64(one), detail: fmt.Sprintf("%d events against %d", many, one)}}, nil
}

// appenders counts what n processes append together.
func appenders(path string, n int) (events int64, err error) {
	if _, _, err := appendFor(path, 1, 0); err != nil { // makes the store
		return 0, err
	}
	counts, errs := make([]int64, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], appendArg, path)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				errs[i] = fmt.Errorf("a process that appends: %w %s", err, stderr.String())
				return
			}
			counts[i], errs[i] = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		})
	}
	wg.Wait()
	for i := range n {
		if errs[i] != nil {
			return 0, errs[i]
		}
		events += counts[i]
	}
	return events, nil
}
