package proc

import (
	"context"
	"os"
	"sync"

	"ashlar/kernel"
)

// Starter starts the commands of one run, or of one process that hosts runs. It
// is safe for concurrent use. Its guard is started by the first command, and
// again by the next one if it was killed.
type Starter struct {
	options Options
	closing chan struct{} // closed by Close
	closed  chan struct{} // closed when Close is done

	dialing sync.Mutex // held while a guard is started
	work    sync.WaitGroup

	mu     sync.Mutex
	over   bool
	link   *link
	labels map[string]map[*child]struct{}
	files  map[*os.File]struct{} // pipes that outlive the call that made them
}

// New returns a Starter; nothing is started yet.
func New(o Options) *Starter {
	return &Starter{
		options: o,
		closing: make(chan struct{}), closed: make(chan struct{}),
		labels: make(map[string]map[*child]struct{}),
		files:  make(map[*os.File]struct{}),
	}
}

// Kill ends every running command of a label: SIGTERM to the whole tree, SIGKILL
// after twice the grace. It reports whether there was one, and does not wait:
// the command's own Run returns, with Killed set, when the tree is gone.
func (s *Starter) Kill(label string) bool {
	s.mu.Lock()
	var named []*child
	for c := range s.labels[label] {
		c.killed.Store(true)
		named = append(named, c)
	}
	s.mu.Unlock()
	for _, c := range named {
		c.link.end(c.call, 2*orDefault(s.options.Grace, DefaultGrace))
	}
	return len(named) > 0
}

// Close ends everything that this Starter started and everything that those left
// behind, and waits until it is gone; Runs that are under way end with ByCancel.
// When ctx ends first, the guard is killed and the host buries by itself. Later
// calls wait for the first.
func (s *Starter) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.over
	if first {
		s.over = true
		close(s.closing)
	}
	s.mu.Unlock()
	if !first {
		<-s.closed
		return nil
	}
	defer close(s.closed)
	// A guard that is just being started belongs to a command that will find the
	// Starter closed; wait for it.
	s.dialing.Lock()
	l := s.link
	s.dialing.Unlock()
	if l != nil {
		_ = l.conn.CloseWrite() // to the guard the same as the host's death
		select {
		case <-l.gone:
		case <-ctx.Done():
			_ = l.process.Process.Kill()
			<-l.gone
		}
	}
	s.mu.Lock()
	for file := range s.files {
		_ = file.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	if l != nil {
		if left := len(l.scope.Alive()); left > 0 {
			return kernel.Errorf("proc.close", kernel.Internal, "%d processes cannot be killed", left)
		}
	}
	return nil
}

// enter registers one piece of work that Close waits for; its end is work.Done.
func (s *Starter) enter(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return kernel.Errorf(op, kernel.Closed, "no command can be started any more: the run has ended")
	}
	s.work.Add(1)
	return nil
}

// connect gives the guard's link, starting the guard when there is none.
func (s *Starter) connect(ctx context.Context, op string) (*link, error) {
	s.dialing.Lock()
	defer s.dialing.Unlock()
	select {
	case <-s.closing:
		return nil, kernel.Errorf(op, kernel.Closed, "no command can be started any more: the run has ended")
	default:
	}
	if s.link != nil && s.link.alive() {
		return s.link, nil
	}
	if s.link != nil {
		<-s.link.gone // what the dead one left is buried first
	}
	l, err := dial(ctx, op, &s.options)
	if err != nil {
		return nil, err
	}
	s.link = l
	return l, nil
}

// alive reports whether the guard takes commands.
func (l *link) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.down
}

// keep makes Close close a pipe, in case its reader still waits for it then.
func (s *Starter) keep(file *os.File) {
	s.mu.Lock()
	s.files[file] = struct{}{}
	s.mu.Unlock()
}

// drop closes a kept pipe.
func (s *Starter) drop(file *os.File) {
	s.mu.Lock()
	delete(s.files, file)
	s.mu.Unlock()
	_ = file.Close()
}

func (s *Starter) label(c *child) {
	if c.name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[c.name] == nil {
		s.labels[c.name] = make(map[*child]struct{})
	}
	s.labels[c.name][c] = struct{}{}
}

func (s *Starter) unlabel(c *child) {
	if c.name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.labels[c.name], c)
	if len(s.labels[c.name]) == 0 {
		delete(s.labels, c.name)
	}
}
