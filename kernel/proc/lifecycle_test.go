//go:build linux

package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/proc"
)

// hostEnv makes the test binary a host that runs one shell line and waits.
const hostEnv = "PROC_TEST_HOST_LINE"

// beHost is what the test binary does under hostEnv: it starts the line, says so,
// and waits to be killed.
func beHost(line string) {
	s := proc.New(proc.Options{})
	spec := proc.Spec{Argv: []string{"sh", "-c", line}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}}
	p, err := s.Start(context.Background(), spec)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	<-p.Done()
	select {}
}

// everyEscape leaves one sleeper by each of the ways.
func everyEscape() (line string, all []string) {
	for _, way := range escapes {
		one := sleeper()
		all = append(all, one)
		line += fmt.Sprintf(way, one)
	}
	return line, all
}

func awaitAll(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		eventually(t, line+" runs", func() bool { return len(survivors(line)) > 0 })
	}
}

func TestNothingOutlivesAKilledHost(t *testing.T) {
	t.Parallel()
	line, all := everyEscape()
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), hostEnv+"="+line+"sleep 30")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	if first, _ := bufio.NewReader(out).ReadString('\n'); first != "started\n" {
		t.Errorf("the host says %q", first)
	}
	awaitAll(t, all)
	_ = host.Process.Kill()
	_ = host.Wait()
	for _, one := range all {
		eventually(t, one+" is gone", func() bool { return len(survivors(one)) == 0 })
	}
}

func TestNothingOutlivesAHostUnderAGuard(t *testing.T) {
	t.Parallel()
	s := start(t)
	line, all := everyEscape()
	host, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	spec := sh(t, "")
	spec.Argv = []string{host}
	spec.Env = append(spec.Env, hostEnv+"="+line+"sleep 30")
	p, err := s.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if first, _ := bufio.NewReader(p.Stdout).ReadString('\n'); first != "started\n" {
		t.Fatalf("the inner host says %q", first)
	}
	awaitAll(t, all)
	p.Terminate(0)
	for _, one := range all {
		mustBeGone(t, one)
	}
}

func TestNothingOutlivesAKilledGuard(t *testing.T) {
	s := start(t) // not parallel: it counts this process's zombies
	before := zombies(0)
	line, all := everyEscape()
	spec := sh(t, "echo $PPID; "+line+"sleep 30")
	spec.Label = "victim"
	type outcome struct {
		r   proc.Result
		err error
	}
	done := make(chan outcome, 1)
	guardOf := guardPID(t, s)
	go func() {
		r, err := s.Run(context.Background(), spec)
		done <- outcome{r, err}
	}()
	awaitAll(t, all)
	if err := syscall.Kill(guardOf, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	o := <-done
	if kernel.KindOf(o.err) != kernel.Internal || !strings.HasPrefix(string(o.r.Stdout), strconv.Itoa(guardOf)) {
		t.Errorf("error %v, stdout %q; want internal and the output so far", o.err, o.r.Stdout)
	}
	for _, one := range all {
		mustBeGone(t, one)
	}
	if r := run(t, s, sh(t, "echo again")); string(r.Stdout) != "again\n" {
		t.Errorf("the next command gave %q", r.Stdout)
	}
	if left := zombies(before); left > before {
		t.Errorf("%d zombies, before the test %d", left, before)
	}
}

// zombies counts the dead children of this process that nobody waited for. One
// that is being waited for is dead for a moment, so it looks until there are no
// more than so many, for a while. (As a subreaper this process also inherits what
// a host that another test killed has left; nobody waits for those.)
func zombies(atMost int) (count int) {
	for range 100 {
		count = 0
		for _, stat := range children(os.Getpid()) {
			if strings.Contains(stat[strings.LastIndex(stat, ")"):], ") Z ") {
				count++
			}
		}
		if count <= atMost {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return count
}

// guardPID is the parent of every command.
func guardPID(t *testing.T, s *proc.Starter) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(string(run(t, s, sh(t, "echo $PPID")).Stdout)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestSignalsOfATerminalDoNotReachTheGuard(t *testing.T) {
	t.Parallel()
	s := start(t)
	pid := guardPID(t, s)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP} {
		_ = syscall.Kill(pid, signal)
	}
	time.Sleep(50 * time.Millisecond)
	if again := guardPID(t, s); again != pid {
		t.Errorf("guard %d was replaced by %d", pid, again)
	}
	group, _ := syscall.Getpgid(pid)
	if group != pid {
		t.Errorf("the guard is in group %d", group)
	}
}

func TestCloseEndsWhatRunsAsCancelled(t *testing.T) {
	t.Parallel()
	s := start(t)
	line, all := everyEscape()
	done := make(chan proc.Result, 1)
	go func() {
		r, err := s.Run(context.Background(), sh(t, line+"sleep 30"))
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	awaitAll(t, all)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.EndedBy != proc.ByCancel {
		t.Errorf("%+v", r)
	}
	for _, one := range all {
		mustBeGone(t, one)
	}
	if _, err := s.Run(context.Background(), sh(t, "true")); kernel.KindOf(err) != kernel.Closed {
		t.Errorf("after Close: %v, want closed", err)
	}
}

func TestCloseWithoutTimeBuriesAllTheSame(t *testing.T) {
	t.Parallel()
	s := start(t)
	line, all := everyEscape()
	run(t, s, sh(t, line))
	awaitAll(t, all)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ended); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		mustBeGone(t, one)
	}
}

func TestAHundredAtOnceLeaveNothing(t *testing.T) {
	s := start(t) // not parallel: it counts this process's descriptors
	run(t, s, sh(t, ":"))
	before := descriptors(t)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			spec := sh(t, fmt.Sprintf("cat; echo %d >&2; exit %d", i, i))
			spec.Stdin = []byte(strings.Repeat("x", i*1000))
			r, err := s.Run(context.Background(), spec)
			if err != nil || r.Code != i || len(r.Stdout) != i*1000 || string(r.Stderr) != fmt.Sprintln(i) {
				t.Errorf("command %d: %+v %v", i, r.Code, err)
			}
		})
	}
	group.Wait()
	eventually(t, "all descriptors are closed again", func() bool { return descriptors(t) <= before })
	guardOf := guardPID(t, s)
	eventually(t, "the guard has reaped all", func() bool { return len(children(guardOf)) == 0 })
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAProgramThatDoesNotReexecIsUnsupported(t *testing.T) {
	t.Parallel()
	silent := filepath.Join(t.TempDir(), "silent")
	line := sleeper()
	if err := os.WriteFile(silent, []byte("#!/bin/sh\n"+line+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, helper := range map[string]string{"ends": "/bin/true", "silent": silent, "absent": "/no/such/helper"} {
		s := proc.New(proc.Options{Helper: helper, Handshake: 500 * time.Millisecond})
		begin := time.Now()
		_, err := s.Run(context.Background(), sh(t, "true"))
		if kernel.KindOf(err) != kernel.Unsupported || time.Since(begin) > 3*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begin))
		}
		if name != "absent" && !strings.Contains(fmt.Sprint(err), "ashlar.Reexec()") {
			t.Errorf("%s: %v does not name the line that is missing", name, err)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	mustBeGone(t, line)
}

func TestAProcessTalksUntilItIsTerminated(t *testing.T) {
	t.Parallel()
	s := start(t)
	line := sleeper()
	ctx, cancel := context.WithCancel(context.Background())
	p, err := s.Start(ctx, sh(t, line+" & while read word; do echo got $word; done; exit 6"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cancel() // bounds the start, not the life
	answers := bufio.NewReader(p.Stdout)
	for _, word := range []string{"one", "two"} {
		fmt.Fprintln(p.Stdin, word)
		if answer, err := answers.ReadString('\n'); answer != "got "+word+"\n" {
			t.Fatalf("%q %v", answer, err)
		}
	}
	_ = p.Stdin.Close()
	<-p.Done()
	if code, signal := p.Exit(); code != 6 || signal != "" || p.PID() <= 1 {
		t.Errorf("code %d, signal %q, pid %d", code, signal, p.PID())
	}
	p.Terminate(0)
	p.Terminate(time.Second)
	mustBeGone(t, line)
}
