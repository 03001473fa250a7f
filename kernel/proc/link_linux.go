package proc

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ashlar/kernel"
	"ashlar/kernel/proc/guard"
	"ashlar/kernel/proc/tree"
)

// buryLimit is how long the host tries to kill what a dead guard left.
const buryLimit = 5 * time.Second

// errGuardLost is the end of every command whose guard was killed.
var errGuardLost = errors.New("the process that guards commands was killed; the command and everything it started were ended")

// link is one guard and the commands that it runs. A goroutine, listen, owns the
// receiving side; it ends with the guard and closes gone.
type link struct {
	conn    *guard.Conn
	process *exec.Cmd
	scope   tree.Scope // everything that this guard's commands can be known by
	gone    chan struct{}

	mu    sync.Mutex
	down  bool // takes no more commands; gone follows
	last  uint64
	calls map[uint64]*call
}

// call is one command as the host sees it. The link closes each channel once.
type call struct {
	id      uint64
	started chan struct{} // pid is set; only for a command that asked for it
	ended   chan struct{} // status is set, or err when it did not start or the guard was lost
	buried  chan struct{} // its tree is gone, after an end was asked for
	pid     int
	status  unix.WaitStatus
	err     error
	left    int // processes that could not be killed
}

// dial starts a guard and shakes hands with it.
func dial(ctx context.Context, op string, o *Options) (*link, error) {
	if guard.Pending() {
		return nil, unsupported(op, "this process was itself started as a guard and went on as a program")
	}
	random := o.Random
	if random == nil {
		random = rand.Reader
	}
	var name [8]byte
	if _, err := io.ReadFull(random, name[:]); err != nil {
		return nil, kernel.Errorf(op, kernel.Internal, "no randomness to name the guard: %w", err)
	}
	path := fmt.Sprintf("%x", name)
	if outer := guard.OuterMarker(); outer != "" {
		path = outer + "/" + path
	}
	// Above 2^62 as a limit it is none; the low half counts the commands.
	tag := 1<<62 | uint64(binary.BigEndian.Uint32(name[:])>>3)<<32
	if err := guard.Subreaper(); err != nil {
		return nil, kernel.Errorf(op, kernel.Unsupported, "this system has no subreapers: %w", err)
	}
	l := &link{
		scope: tree.Scope{Path: path, FirstTag: tag, LastTag: tag + guard.MaxCommands},
		gone:  make(chan struct{}),
		calls: make(map[uint64]*call),
	}
	if err := l.start(op, o); err != nil {
		return nil, err
	}
	if err := l.shakeHands(ctx, op, o); err != nil {
		_ = l.conn.Close()
		l.scope.Bury(buryLimit) // whatever program that is, it carries the marker
		_ = l.process.Wait()
		l.bury()
		return nil, err
	}
	go l.listen()
	return l, nil
}

// start executes the guard with one end of a socket as descriptor 3.
func (l *link) start(op string, o *Options) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return kernel.Errorf(op, kernel.Limit, "no socket for the guard: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "guard")
	defer theirs.Close()
	if l.conn, err = guard.NewConn(os.NewFile(uintptr(pair[0]), "guard")); err != nil {
		return kernel.Errorf(op, kernel.Internal, "socket for the guard: %w", err)
	}
	binary := o.Helper
	if binary == "" {
		binary = "/proc/self/exe" // the running image, even when its file was replaced
	}
	l.process = &exec.Cmd{
		Path: binary,
		Args: []string{"ashlar-guard"},
		Dir:  "/", // pins no directory
		// The marker begins with that of an outer guard, which so knows this one too.
		// GOMAXPROCS: a fork holds one processor until the exec; the others go on.
		Env:         []string{guard.EnvName + "=" + guard.Version, tree.MarkerName + "=" + l.scope.Path, "GOMAXPROCS=4"},
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no terminal's signals
	}
	if err := l.process.Start(); err != nil {
		_ = l.conn.Close()
		return kernel.Errorf(op, kernel.Unsupported, "guard %s: %w", binary, err)
	}
	return nil
}

// shakeHands waits for the guard's first word. Silence or an early end mean that
// the program did not call guard.Main.
func (l *link) shakeHands(ctx context.Context, op string, o *Options) error {
	heard := make(chan error, 1)
	go func() {
		m, _, err := l.conn.Receive()
		if err == nil && m.Kind != guard.Hello {
			err = errors.New("unexpected first message")
		}
		heard <- err
	}()
	timer := time.NewTimer(orDefault(o.Handshake, HandshakeTime))
	defer timer.Stop()
	var err error
	select {
	case err = <-heard:
		if err != nil {
			return unsupported(op, "the guard ended before its first word")
		}
		config := &guard.Message{Kind: guard.Config, Path: l.scope.Path, Number: int64(l.scope.FirstTag)}
		if err := l.conn.Send(config); err != nil {
			return unsupported(op, "the guard ended after its first word")
		}
		return nil
	case <-timer.C:
		err = unsupported(op, "the guard did not speak")
	case <-ctx.Done():
		err = kernel.Errorf(op, kernel.Cancelled, "while the guard was started: %w", context.Cause(ctx))
	}
	_ = l.conn.Close() // ends the goroutine
	<-heard
	return err
}

func unsupported(op, what string) error {
	return kernel.Errorf(op, kernel.Unsupported,
		"%s: call ashlar.Reexec() first in main and in TestMain, or set Options.Helper to a binary that does", what)
}

// errDown says that a guard is on its way out and never saw the command.
var errDown = errors.New("the process that guards commands has ended")

// spawn asks the guard for a command. files are its descriptors; they stay the
// caller's. After errDown, another guard may be asked.
func (l *link) spawn(m *guard.Message, files ...int) (*call, error) {
	c := &call{started: make(chan struct{}), ended: make(chan struct{}), buried: make(chan struct{})}
	l.mu.Lock()
	if l.down || l.last == guard.MaxCommands {
		l.mu.Unlock()
		return nil, errDown
	}
	l.last++
	c.id, m.ID = l.last, l.last
	l.calls[c.id] = c
	l.mu.Unlock()
	m.Env = append([]string{fmt.Sprintf("%s=%s.%d", tree.MarkerName, l.scope.Path, c.id)}, m.Env...)
	if err := l.conn.Send(m, files...); err != nil {
		l.forget(c)
		if !errors.Is(err, guard.ErrTooLong) {
			err = errDown // part of a message starts nothing
		}
		return nil, err
	}
	return c, nil
}

// end asks the guard to end a command's tree: SIGTERM, then SIGKILL after grace.
// The call's buried says when that is done.
func (l *link) end(c *call, grace time.Duration) {
	_ = l.conn.Send(&guard.Message{Kind: guard.End, ID: c.id, Number: int64(grace)}) // a dead guard shows in listen
}

// forget drops a call that is over for its caller.
func (l *link) forget(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c.id)
}

// listen takes the guard's reports until it is gone, then buries what it left.
func (l *link) listen() {
	defer close(l.gone)
	for {
		m, _, err := l.conn.Receive()
		if err != nil {
			break
		}
		l.mu.Lock()
		c := l.calls[m.ID]
		l.mu.Unlock()
		if c != nil {
			c.take(m)
		}
	}
	l.mu.Lock()
	l.down = true
	l.mu.Unlock()
	_ = l.conn.Close()
	// Either it has exited, or it will because its socket is closed. One that is
	// stopped or broken would not.
	timer := time.AfterFunc(2*guard.BuryLimit, func() { _ = l.process.Process.Kill() })
	err := l.process.Wait()
	timer.Stop()
	if err != nil { // exit 0 says that nothing was left
		l.bury()
	}
	l.mu.Lock()
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	for _, c := range calls {
		c.lose()
	}
}

// take applies one report; only listen calls it.
func (c *call) take(m *guard.Message) {
	switch m.Kind {
	case guard.Started:
		c.pid = int(m.Number)
		closeOnce(c.started)
	case guard.Failed:
		c.err = syscall.Errno(m.Number)
		closeOnce(c.ended)
	case guard.Exited:
		c.status = unix.WaitStatus(m.Number)
		closeOnce(c.ended)
	case guard.Buried:
		c.left = int(m.Number)
		closeOnce(c.buried)
	}
}

// lose ends a call whose guard is gone; only listen calls it.
func (c *call) lose() {
	select {
	case <-c.ended:
	default:
		c.err = errGuardLost
		close(c.ended)
	}
	closeOnce(c.buried)
}

// closeOnce closes a channel that only the caller's goroutine ever closes.
func closeOnce(ch chan struct{}) {
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// bury kills what a dead guard left, and waits for those that became children of
// this process, each by its number: other children belong to the host's program.
func (l *link) bury() {
	for deadline := time.Now().Add(buryLimit); ; {
		left := l.scope.Bury(time.Until(deadline))
		members := l.scope.Members()
		for _, p := range members {
			if p.Parent == os.Getpid() {
				_, _ = unix.Wait4(p.PID, nil, unix.WNOHANG, nil)
			}
		}
		if left == 0 && len(members) == 0 || !time.Now().Before(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
