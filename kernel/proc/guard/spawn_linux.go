package guard

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"ashlar/kernel/proc/tree"
)

// MaxCommands is how many commands one starter can number.
const MaxCommands = 1<<32 - 1

// spawn forks command c and reports how that went.
func (g *guard) spawn(c *command, m *Message, files []int) {
	defer close(c.forked)
	defer func() {
		for _, fd := range files {
			_ = unix.Close(fd)
		}
	}()
	streams, ok := g.streams(m, files)
	if !ok {
		g.fail(c, unix.EBADF)
		return
	}
	// One at a time: the tag of the command is set on the guard itself, and the
	// child inherits it. Go runs forks one at a time anyway.
	g.forking.Lock()
	defer g.forking.Unlock()
	if !g.takeOff() {
		g.fail(c, unix.ECANCELED)
		return
	}
	if g.tag != 0 {
		_ = tree.SetTag(g.tag + c.id) // it worked for the starter's own tag
	}
	pid, err := syscall.ForkExec(m.Path, m.Argv, &syscall.ProcAttr{
		Dir:   m.Dir,
		Env:   m.Env,
		Files: streams,
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	g.register(c, pid, err, m.Flags&WantStarted != 0)
}

// streams gives the descriptors that become 0, 1 and 2.
func (g *guard) streams(m *Message, files []int) ([]uintptr, bool) {
	streams := []uintptr{uintptr(g.devNull)}
	if m.Flags&WithStdin != 0 {
		streams = nil
	}
	for _, fd := range files {
		streams = append(streams, uintptr(fd))
	}
	return streams, len(streams) == 3
}

// register makes a forked command known to the reaper. A command that was so quick
// that the reaper had it first is reported here.
func (g *guard) register(c *command, pid int, err error, wantStarted bool) {
	if err != nil {
		g.mu.Lock()
		g.landed()
		g.mu.Unlock()
		errno := syscall.EIO
		errors.As(err, &errno)
		g.fail(c, errno)
		return
	}
	if wantStarted {
		// Before the command is known to the reaper, so that its end cannot come first.
		_ = g.conn.Send(&Message{Kind: Started, ID: c.id, Number: int64(pid)})
	}
	g.mu.Lock()
	status, gone := g.early[pid]
	if !gone {
		g.running[pid] = c
	}
	g.landed()
	g.mu.Unlock()
	if gone {
		g.report(c, status)
	}
}

// takeOff begins one fork's flight; false when the guard is on its way out.
func (g *guard) takeOff() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false
	}
	g.inFlight++
	return true
}

// landed ends it; g.mu is held.
func (g *guard) landed() {
	if g.inFlight--; g.inFlight == 0 {
		clear(g.early)
	}
	g.wakeReaper()
}

func (g *guard) fail(c *command, errno syscall.Errno) {
	g.forget(c)
	_ = g.conn.Send(&Message{Kind: Failed, ID: c.id, Number: int64(errno)})
}

func (g *guard) report(c *command, status unix.WaitStatus) {
	g.forget(c)
	_ = g.conn.Send(&Message{Kind: Exited, ID: c.id, Number: int64(status)})
}

func (g *guard) forget(c *command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.commands, c.id)
}

// reap waits for every child that this process has or inherits, for as long as
// the guard lives.
func (g *guard) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			g.mu.Lock()
			over := g.closing && g.inFlight == 0
			g.mu.Unlock()
			if over {
				close(g.empty)
				return
			}
			<-g.forked
		case err == nil:
			g.reapedOne(pid, status)
		}
	}
}

func (g *guard) reapedOne(pid int, status unix.WaitStatus) {
	g.mu.Lock()
	c := g.running[pid]
	delete(g.running, pid)
	if c == nil && g.inFlight > 0 {
		g.early[pid] = status
	}
	close(g.reaped)
	g.reaped = make(chan struct{})
	g.mu.Unlock()
	if c != nil {
		g.report(c, status)
	}
}

func (g *guard) wakeReaper() {
	select {
	case g.forked <- struct{}{}:
	default:
	}
}
