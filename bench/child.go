package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"

	"ashlar/kernel/proc"
)

const childRuns = 300

// trivialChild compares a trivial command through the guard with os/exec; they take
// turns.
func trivialChild(p place) ([]figure, error) {
	dir, err := p.sub("child")
	if err != nil {
		return nil, err
	}
	s := proc.New(proc.Options{})
	defer s.Close(context.Background()) //nolint:errcheck // the process ends next
	env := []string{"PATH=/usr/bin:/bin"}
	spec := proc.Spec{Argv: []string{"true"}, Dir: dir, Env: env}
	if _, err := s.Run(context.Background(), spec); err != nil { // starts the guard
		return nil, err
	}
	var guarded, plain []time.Duration
	for range childRuns {
		began := time.Now()
		if _, err := s.Run(context.Background(), spec); err != nil {
			return nil, err
		}
		guarded = append(guarded, time.Since(began))

		cmd := exec.Command("true")
		cmd.Dir, cmd.Env = dir, env
		cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		began = time.Now()
		if err := cmd.Run(); err != nil {
			return nil, err
		}
		plain = append(plain, time.Since(began))
	}
	a, b := median(guarded), median(plain)
	return []figure{{what: "a trivial command through the guard against os/exec", asked: 1.5, measured: float64(a) / float64(b),
		detail: fmt.Sprintf("%.2f ms against %.2f ms", ms(a), ms(b))}}, nil
}
