//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// suite is where the server is installed, and how long it may take to start.
const (
	suite   = "../testdata/suites/aimock"
	startup = 20 * time.Second
)

// chaos is how often the server does what, of 1; latency is in milliseconds.
type chaos struct {
	drop, malformed, disconnect, ratelimit float64
	latency                                int
}

func (c chaos) flags() (all []string) {
	for name, v := range map[string]float64{"drop": c.drop, "malformed": c.malformed, "disconnect": c.disconnect, "ratelimit": c.ratelimit} {
		all = append(all, "--chaos-"+name, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return append(all, "--chaos-latency", strconv.Itoa(c.latency))
}

// server is a running aimock.
type server struct{ url string }

// startServer starts it on loopback; the test's end kills it.
func startServer(t *testing.T, c chaos) server {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	cli := filepath.Join(suite, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(cli); err != nil {
		t.Skip("the server is not installed: make interop does it")
	}
	port := freePort(t)
	ctx, stop := context.WithCancel(context.Background())
	args := append([]string{cli, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-f", filepath.Join(suite, "fixtures.json"), "--strict", "--validate-on-load",
		"--journal-max", "0", "--log-level", "silent"}, c.flags()...)
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.Stderr, os.Stderr, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	s := server{url: fmt.Sprint("http://127.0.0.1:", port)}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		res, err := http.Get(s.url + "/health")
		if err == nil {
			res.Body.Close()
			return s
		}
		if time.Since(begun) > startup {
			t.Fatalf("the server did not start: %v", err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// requests counts the model calls that reached the server, by path.
func (s server) requests(t *testing.T) map[string]int {
	t.Helper()
	res, err := http.Get(s.url + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Path string }
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
	n := map[string]int{}
	for _, e := range list {
		n[e.Path]++
	}
	return n
}
