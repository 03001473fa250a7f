package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ashlar"
)

// median of what was measured; it sorts.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// block runs a script in this process and gives its value and the workspace, which
// the caller closes.
func block(dir, url, src string) (any, *ashlar.Workspace, error) {
	return boundedBlock(dir, url, src, ashlar.Bounds{})
}

// boundedBlock is block with bounds.
func boundedBlock(dir, url, src string, bounds ashlar.Bounds) (any, *ashlar.Workspace, error) {
	script := filepath.Join(dir, "block.lua")
	if err := os.WriteFile(script, []byte(src), 0o600); err != nil {
		return nil, nil, err
	}
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Environ: environ(dir, url), Stderr: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	r, err := ws.Prepare(ashlar.Task{Script: script, Bounds: bounds})
	if err != nil {
		return nil, nil, err
	}
	result := r.Execute(context.Background())
	if result.Err != nil {
		return nil, nil, fmt.Errorf("the block: %s", ashlar.Explain(result.Err, true))
	}
	return result.Value, ws, nil
}

func environ(dir, url string) []string {
	return []string{"ASHLAR_HOME=" + filepath.Join(dir, "home"), "HOME=" + dir, "PATH=" + os.Getenv("PATH"),
		"ASHLAR_BASE_URL=" + url, "ASHLAR_MODEL=openai/scripted-1", "OPENAI_API_KEY=sk-bench-0123456789"}
}
