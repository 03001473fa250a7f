package crash

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"ashlar/kernel/run"
)

// filling appends until something refuses, and prints each seq that it was told of.
const filling = `
local s = knl.open({})
print("S " .. s:id())
for i = 1, 1e6 do
  print("A " .. s:append({ kind = "note", data = { text = std.crypto.random_hex(3000) } }))
end`

// told reads what such a script printed.
func told(stdout string) (session string, acked []int64) {
	for _, line := range strings.Split(stdout, "\n") {
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "S":
			session = rest
		case "A":
			if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
				acked = append(acked, n)
			}
		}
	}
	return session, acked
}

// full checks the ending of a run whose log could not be written any more; room is
// made before the log is read.
func (p *place) full(e ended, room func()) {
	p.t.Helper()
	session, acked := told(e.stdout)
	if e.code != 1 || !strings.Contains(e.stderr, "storage") || len(acked) == 0 {
		p.t.Errorf("%d appends; %v", len(acked), e)
	}
	if strings.Contains(e.stderr, "goroutine ") {
		p.t.Errorf("the host fell: %v", e)
	}
	room()
	_, s, rows := p.records()
	p.acknowledged(verify(p.t, s)[session], acked)
	if len(rows) != 1 || rows[0].State == run.Completed {
		p.t.Errorf("rows %+v", rows)
	}
	if e := p.run(binary, "run", "-q", "-s", p.script(`local s = knl.open({}) s:append({kind = "x"}) return "fine"`)); e.code != 0 {
		p.t.Errorf("with room again: %v", e)
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	p := newPlace(t)
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", p.home, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v (TestAFileLimitLosesNothing covers it)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(p.home, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	e := p.run(binary, "run", "-q", "-s", p.script(filling), "--deadline", "20s")
	p.full(e, func() {
		if err := syscall.Mount("tmpfs", p.home, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAFileLimitLosesNothing bounds the size of every file that the process writes.
func TestAFileLimitLosesNothing(t *testing.T) {
	p := newPlace(t)
	e := p.run("sh", "-c", "ulimit -f 2000; exec "+binary+" run -q -s "+p.script(filling)+" --deadline 20s")
	p.full(e, func() {})
}

func TestAFullDiskBeforeTheRun(t *testing.T) {
	p := newPlace(t)
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", p.home, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer syscall.Unmount(p.home, syscall.MNT_DETACH) //nolint:errcheck // the folder goes away next
	e := p.run(binary, "run", "-q", "-s", p.script(`return 1`))
	if e.code != 1 || !strings.Contains(e.stderr, p.home) || strings.Contains(e.stderr, "goroutine ") {
		t.Errorf("%v", e)
	}
}

// TestAHomeThatCannotBeWritten uses a file in its place where root may write
// everywhere.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	t.Run("read-only", func(t *testing.T) {
		p := newPlace(t)
		if err := os.MkdirAll(p.home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", p.home, "tmpfs", syscall.MS_RDONLY, ""); err != nil {
			t.Skipf("no tmpfs can be mounted here: %v", err)
		}
		defer syscall.Unmount(p.home, syscall.MNT_DETACH) //nolint:errcheck // the folder goes away next
		p.refused("read-only")
	})
	t.Run("read-only with a log", func(t *testing.T) {
		p := newPlace(t)
		if e := p.run(binary, "run", "-q", "-s", p.script(`return 1`)); e.code != 0 {
			t.Fatal(e)
		}
		if err := syscall.Mount(p.home, p.home, "", syscall.MS_BIND, ""); err != nil {
			t.Skipf("no bind mount here: %v", err)
		}
		defer syscall.Unmount(p.home, syscall.MNT_DETACH) //nolint:errcheck // the folder goes away next
		if err := syscall.Mount("", p.home, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Skipf("no read-only bind mount here: %v", err)
		}
		p.refused("read-only")
		// What is there can be read all the same.
		for _, verb := range []string{"sessions", "verify"} {
			if e := p.run(binary, "log", verb); e.code != 0 {
				t.Errorf("log %s: %v", verb, e)
			}
		}
	})
	t.Run("file", func(t *testing.T) {
		p := newPlace(t)
		if err := os.WriteFile(p.home, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.refused("not a directory")
	})
}

func (p *place) refused(words ...string) {
	p.t.Helper()
	e := p.run(binary, "run", "-q", "-s", p.script(`return 1`))
	if e.code != 1 || strings.Contains(e.stderr, "goroutine ") || e.stdout != "" {
		p.t.Errorf("%v", e)
	}
	for _, w := range append(words, p.home) {
		if !strings.Contains(e.stderr, w) {
			p.t.Errorf("the message does not say %q: %s", w, e.stderr)
		}
	}
}

func TestADatabaseThatIsNone(t *testing.T) {
	for name, content := range map[string]string{
		"text": strings.Repeat("this is no database\n", 1000), "torn": "SQLite format 3\x00" + strings.Repeat("\xff", 20000), "short": "SQLite",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if err := os.MkdirAll(p.home, 0o700); err != nil {
				t.Fatal(err)
			}
			db := filepath.Join(p.home, "kernel.db")
			if err := os.WriteFile(db, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			p.refused("corruption")
			if b, err := os.ReadFile(db); err != nil || string(b) != content {
				t.Errorf("the file was changed: %d bytes, %v", len(b), err)
			}
		})
	}
	t.Run("folder", func(t *testing.T) {
		p := newPlace(t)
		if err := os.MkdirAll(filepath.Join(p.home, "kernel.db"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.refused("directory")
	})
}

func TestADatabaseOfANewerProgram(t *testing.T) {
	p := newPlace(t)
	if e := p.run(binary, "run", "-q", "-s", p.script(`return 1`)); e.code != 0 {
		t.Fatal(e)
	}
	db, err := sql.Open("sqlite", filepath.Join(p.home, "kernel.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	p.refused("unsupported", "99", "1")
}

func TestADatabaseOfAnotherProgram(t *testing.T) {
	p := newPlace(t)
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(p.home, "kernel.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (x)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	p.refused("unsupported", "another program")
}

// TestManyProcessesOnOneHome starts them together, on a home that is not there yet.
func TestManyProcessesOnOneHome(t *testing.T) {
	p := newPlace(t)
	script := p.script(`
local s = knl.open({})
for i = 1, 50 do s:append({ kind = "note", data = { n = i } }) end
return s:id()`)
	const processes = 8
	all := make([]ended, processes)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = finish(t, p.command(binary, "run", "-q", "-s", script, "--deadline", "30s")) })
	}
	wg.Wait()
	for _, e := range all {
		if e.code != 0 || e.took > 10*time.Second {
			t.Errorf("%v", e)
		}
	}
	_, s, rows := p.records()
	events := verify(t, s)
	if len(rows) != processes {
		t.Errorf("%d runs", len(rows))
	}
	for _, r := range rows {
		if r.State != run.Completed || len(r.Sessions) != 1 || len(events[r.Sessions[0]]) != 52 {
			t.Errorf("run %s is %s with %d events", r.ID, r.State, len(events[r.Sessions[0]]))
		}
	}
}

// TestTwoWritersOfOneSession has the second refused, with the owner's process id.
func TestTwoWritersOfOneSession(t *testing.T) {
	p := newPlace(t)
	first := p.command(binary, "run", "-q", "-s", p.script(`
local s = knl.open({})
print(s:id())
std.task.sleep(1000)
s:append({kind = "x"})
return s:len()`))
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	n, _ := out.Read(buf)
	id := strings.TrimSpace(string(buf[:n]))
	second := filepath.Join(p.dir, "second.lua")
	if err := os.WriteFile(second, []byte(`knl.resume({session = _PROMPT})`), 0o644); err != nil {
		t.Fatal(err)
	}
	e := p.run(binary, "run", "-q", "-s", second, id)
	if e.code != 1 || !strings.Contains(e.stderr, "busy") || !strings.Contains(e.stderr, fmt.Sprint(first.Process.Pid)) {
		t.Errorf("%v", e)
	}
	n, _ = out.Read(buf)
	if err := first.Wait(); err != nil || strings.TrimSpace(string(buf[:n])) == "" {
		t.Errorf("the first writer: %v %q", err, buf[:n])
	}
}
