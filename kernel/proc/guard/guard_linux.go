package guard

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ashlar/kernel/proc/tree"
)

// BuryLimit bounds how long the members of one command may take to die before its
// end is reported with some left. Only a process that the kernel holds in an
// uninterruptible call needs more. At the end, when the host is gone, nothing
// bounds it.
const BuryLimit = 5 * time.Second

// socketFD is the descriptor that a guard is started with.
const socketFD = 3

// Main returns at once unless this process was started as a guard; then it does a
// guard's work and ends the process. A program calls it (as ashlar.Reexec) first
// in main and in TestMain, before it reads its arguments.
func Main() {
	if os.Getenv(EnvName) != Version {
		return
	}
	if !isSocket(socketFD) {
		// A program that inherited the variable by accident. It is taken away, so that
		// this program's own guard is not mistaken for a loop.
		_ = os.Unsetenv(EnvName)
		return
	}
	os.Exit(serve())
}

// Pending reports whether this process was started as a guard and is not one: its
// main never called Main. Starting a guard from here would go on for ever.
func Pending() bool { return os.Getenv(EnvName) != "" }

// OuterMarker gives the marker that this process itself carries, "" when it does
// not run under another guard.
func OuterMarker() string { return os.Getenv(tree.MarkerName) }

// Subreaper makes this process the parent of whatever orphans appear below it.
func Subreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

func isSocket(fd int) bool {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_STREAM
}

// guard is the state of a guard process.
type guard struct {
	conn    *Conn
	path    string // marker of the starter
	tag     uint64 // tag of the starter; command n has tag+n; 0 when the system has none
	devNull int

	forking sync.Mutex    // held from setting a command's tag until it is forked
	forked  chan struct{} // wakes the reaper; holds one token
	empty   chan struct{} // closed by the reaper when no child is left after closing

	mu       sync.Mutex
	commands map[uint64]*command
	running  map[int]*command // by process
	inFlight int              // forks that are not registered yet
	early    map[int]unix.WaitStatus
	reaped   chan struct{} // closed and renewed at each reaped process
	closing  bool
}

// command is one that was asked for and has not been reported as ended.
type command struct {
	id     uint64
	forked chan struct{} // closed once it runs or could not be started
}

// serve does a guard's work until the host is gone and nothing is left.
func serve() int {
	unix.CloseOnExec(socketFD)
	// Caught, not ignored: an ignored signal would stay ignored in every command.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	conn, err := NewConn(os.NewFile(socketFD, "host"))
	if err != nil {
		return 1
	}
	if err := Subreaper(); err != nil {
		return 1
	}
	devNull, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 1
	}
	g := &guard{
		conn: conn, devNull: devNull,
		forked: make(chan struct{}, 1), empty: make(chan struct{}), reaped: make(chan struct{}),
		commands: make(map[uint64]*command), running: make(map[int]*command), early: make(map[int]unix.WaitStatus),
	}
	if err := conn.Send(&Message{Kind: Hello}); err != nil {
		return 1
	}
	config, _, err := conn.Receive()
	if err != nil || config.Kind != Config {
		return 1
	}
	g.path = config.Path
	if tag := uint64(config.Number); tree.SetTag(tag) == nil {
		g.tag = tag
	}
	go g.reap()
	g.obey()
	g.buryAll()
	return 0
}

// obey takes commands until the host is gone or speaks nonsense.
func (g *guard) obey() {
	for {
		m, files, err := g.conn.Receive()
		if err != nil {
			return
		}
		switch m.Kind {
		case Spawn:
			c := &command{id: m.ID, forked: make(chan struct{})}
			g.mu.Lock()
			g.commands[m.ID] = c
			g.mu.Unlock()
			// Beside this loop, because an exec can hang (a dead network file system) and
			// an End must still be heard.
			go g.spawn(c, m, files)
		case End:
			go g.end(m.ID, time.Duration(m.Number))
		default:
			return
		}
	}
}

// scope says what belongs to command id.
func (g *guard) scope(id uint64) tree.Scope {
	s := tree.Scope{Path: fmt.Sprintf("%s.%d", g.path, id)}
	if g.tag != 0 {
		s.FirstTag, s.LastTag = g.tag+id, g.tag+id
	}
	return s
}

// end ends command id with everything that it started, and says so.
func (g *guard) end(id uint64, grace time.Duration) {
	g.mu.Lock()
	c := g.commands[id]
	g.mu.Unlock()
	if c != nil {
		<-c.forked // else it could be missed
	}
	scope := g.scope(id)
	if grace > 0 && scope.Terminate() > 0 {
		g.awaitEmpty(scope, grace)
	}
	left := scope.Bury(BuryLimit)
	_ = g.conn.Send(&Message{Kind: Buried, ID: id, Number: int64(left)}) // a host that is gone shows in obey
}

// awaitEmpty waits until nobody of the scope runs, at most for grace. The last
// member to die has no parent among them, so it is the guard's own child: looking
// after each reaped process is enough.
func (g *guard) awaitEmpty(scope tree.Scope, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		g.mu.Lock()
		reaped := g.reaped
		g.mu.Unlock()
		if len(scope.Alive()) == 0 {
			return
		}
		select {
		case <-reaped:
		case <-timer.C:
			return
		}
	}
}

// buryAll kills everything below the guard and returns when it has no child left.
// It never gives up: a guard that left would leave the rest without a bound.
func (g *guard) buryAll() {
	g.mu.Lock()
	g.closing = true // no fork begins from here on
	g.mu.Unlock()
	g.wakeReaper()
	all := tree.Scope{Path: g.path, Below: syscall.Getpid()}
	if g.tag != 0 {
		all.FirstTag, all.LastTag = g.tag, g.tag+MaxCommands
	}
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		all.Bury(BuryLimit)
		select {
		case <-g.empty:
			return
		case <-time.After(pause): // the dead may have left orphans, or the kernel holds one
		}
	}
}
