package crash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
)

// binary is ashlar, built once for all tests.
var binary string

// hostArg makes the test binary a host of one run, with a heap bound that the
// command line has no flag for: hostArg SCRIPT DEADLINE HEAP.
const hostArg = "crash-host"

func TestMain(m *testing.M) {
	ashlar.Reexec()
	if len(os.Args) == 5 && os.Args[1] == hostArg {
		os.Exit(beHost(os.Args[2:]))
	}
	if len(os.Args) == 4 && os.Args[1] == statementArg {
		os.Exit(beStopped(os.Args[2], os.Args[3]))
	}
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	os.Exit(withBinary(m))
}

func withBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ashlar-crash-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ashlar")
	build := exec.Command("go", "build", "-o", binary, "ashlar/cmd/ashlar")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building ashlar: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// beHost runs a script as the command does, under a heap bound.
func beHost(args []string) int {
	deadline, err := time.ParseDuration(args[1])
	if err != nil {
		panic(err)
	}
	heap, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		panic(err)
	}
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer ws.Close()
	r, err := ws.Prepare(ashlar.Task{Script: args[0], Bounds: ashlar.Bounds{Deadline: deadline, Heap: heap}, Exit: os.Exit})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	result := r.Execute(context.Background())
	if result.Err != nil {
		fmt.Fprintln(os.Stderr, "error:", result.Err)
	}
	return result.Code()
}

// place is a home and a project of one test's own.
type place struct {
	t    testing.TB
	home string
	dir  string
	env  []string // beside PATH, HOME and ASHLAR_HOME
}

func newPlace(t testing.TB) *place {
	t.Helper()
	if testing.Short() {
		t.Skip("crash tests are skipped with -short")
	}
	root := t.TempDir()
	p := &place{t: t, home: filepath.Join(root, "home"), dir: filepath.Join(root, "project")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// script writes a block and gives its path.
func (p *place) script(src string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, "block.lua")
	if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.home), "ASHLAR_HOME=" + p.home}, p.env...)
	return cmd
}

// ended is how a process ended.
type ended struct {
	code           int // -1 for a signal
	signal         syscall.Signal
	stdout, stderr string
	took           time.Duration
	maxRSS         int64 // bytes
}

func (e ended) String() string {
	return fmt.Sprintf("exit %d (signal %v) after %v, max RSS %d MiB\nstdout: %.600s\nstderr: %.1500s",
		e.code, e.signal, e.took.Round(time.Millisecond), e.maxRSS>>20, e.stdout, e.stderr)
}

// patience is what no process of a test may outlive.
const patience = 60 * time.Second

func (p *place) run(name string, args ...string) ended {
	p.t.Helper()
	return finish(p.t, p.command(name, args...))
}

// finish runs a command to its end.
func finish(t testing.TB, cmd *exec.Cmd) ended {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	peak, over := make(chan int64, 1), make(chan struct{})
	go func() { peak <- peakOf(cmd.Process.Pid, over) }()
	err := cmd.Wait()
	stop.Stop()
	close(over)
	e := ended{took: time.Since(began), stdout: stdout.String(), stderr: stderr.String(), maxRSS: <-peak}
	e.read(err, cmd.ProcessState)
	return e
}

// peakOf gives the largest resident memory of a process, which the system counts;
// what wait4 gives of a child begins with what its parent has.
func peakOf(pid int, over <-chan struct{}) (peak int64) {
	for {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, ok := bytes.Cut(b, []byte("VmHWM:")); ok {
			line, _, _ := bytes.Cut(rest, []byte("kB"))
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
			peak = max(peak, n<<10)
		}
		select {
		case <-over:
			return peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (e *ended) read(err error, state *os.ProcessState) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.stderr += "\nwait: " + err.Error()
	}
	if state == nil {
		return
	}
	e.code = state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.signal = ws.Signal()
	}
}

// records opens a home's log for reading.
func (p *place) records() (*ashlar.Workspace, store.Store, []run.Row) {
	p.t.Helper()
	ctx := context.Background()
	ws, err := ashlar.Open(ctx, ashlar.Options{Project: p.dir, Environ: []string{"ASHLAR_HOME=" + p.home}})
	if err != nil {
		p.t.Fatalf("open: %v", err)
	}
	p.t.Cleanup(func() { ws.Close() })
	s, err := ws.Store(ctx)
	if err != nil {
		p.t.Fatalf("the log does not open: %v", err)
	}
	ledger, err := ws.Runs(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := ledger.List(ctx, "", store.MaxPage)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range rows { // a listing leaves out the sessions
		if rows[i], err = ledger.Get(ctx, rows[i].ID); err != nil {
			p.t.Fatal(err)
		}
	}
	return ws, s, rows
}

// verify computes the chain of every stream again and gives the events by stream.
func verify(t testing.TB, s store.Store) map[string][]event.Event {
	t.Helper()
	ctx := context.Background()
	all := map[string][]event.Event{}
	for after := ""; ; {
		heads, err := s.Streams(ctx, after, store.MaxPage)
		if err != nil {
			t.Fatalf("streams: %v", err)
		}
		for _, h := range heads {
			after = h.Stream
			all[h.Stream] = verifyStream(t, s, h)
		}
		if len(heads) < store.MaxPage {
			return all
		}
	}
}

func verifyStream(t testing.TB, s store.Store, h event.Head) (events []event.Event) {
	t.Helper()
	prev := sha256.Sum256([]byte("ashlar-log-1\n" + h.Stream))
	for more := true; more; {
		page, rest, err := s.Events(context.Background(), h.Stream, store.Query{From: int64(len(events)) + 1, Bodies: true})
		if err != nil {
			t.Fatalf("stream %s: %v", h.Stream, err)
		}
		for _, e := range page {
			events = append(events, e)
			if e.Seq != int64(len(events)) {
				t.Fatalf("stream %s: seq %d after %d events", h.Stream, e.Seq, len(events)-1)
			}
			prev = link(prev, e)
			if prev != e.Hash {
				t.Fatalf("stream %s: the chain breaks at %d (%s)", h.Stream, e.Seq, e.Kind)
			}
		}
		more = rest
	}
	if h.Seq != int64(len(events)) || h.Hash != prev {
		t.Fatalf("stream %s: the head says %d:%s, the chain %d:%x", h.Stream, h.Seq, h.Hash, len(events), prev)
	}
	return events
}

// link is contracts §1, computed without the code under test.
func link(prev [32]byte, e event.Event) [32]byte {
	hash := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode([]any{hex.EncodeToString(prev[:]), e.Stream, e.Seq, e.EpochMS, e.Kind, e.SchemaVersion, hash(e.Meta), hash(e.Data)})
	return sha256.Sum256(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// dataOf reads an event's data.
func dataOf(t testing.TB, e event.Event) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(e.Data, &m); err != nil {
		t.Fatalf("%s %d: %v", e.Stream, e.Seq, err)
	}
	return m
}

// survivors lists processes whose command line or environment holds a word.
func survivors(words ...string) []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	self := strconv.Itoa(os.Getpid())
	for _, dir := range dirs {
		if filepath.Base(dir) == self {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		for _, w := range words {
			if bytes.Contains(cmdline, []byte(w)) || bytes.Contains(environ, []byte(w)) {
				found = append(found, fmt.Sprintf("%s %q", filepath.Base(dir), strings.ReplaceAll(string(cmdline), "\x00", " ")))
				break
			}
		}
	}
	return found
}

// noneLeft waits up to a limit until no process of a place is left: each has the
// place's home in its environment, or a word of the test in its command line.
func (p *place) noneLeft(limit time.Duration, words ...string) {
	p.t.Helper()
	words = append(words, "ASHLAR_HOME="+p.home)
	var left []string
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if left = survivors(words...); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			p.t.Errorf("%d processes are left: %v", len(left), left)
			return
		}
	}
}
