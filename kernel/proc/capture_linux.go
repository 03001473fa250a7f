package proc

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// capture drains one output pipe of a command and keeps the first limit bytes. Its
// goroutine ends at the end of the pipe or with the Starter, whichever is first.
type capture struct {
	file  *os.File
	limit int64
	over  chan<- struct{} // told, without waiting, when the limit is exceeded
	done  chan struct{}   // data and seen are final
	data  []byte
	seen  int64

	mu    sync.Mutex
	until time.Time // zero: the command runs; else no output counts that comes later
}

// capture starts draining a pipe, which it takes over.
func (s *Starter) capture(file *os.File, limit int64, over chan<- struct{}) *capture {
	c := &capture{file: file, limit: limit, over: over, done: make(chan struct{})}
	s.keep(file)
	s.work.Go(func() {
		defer s.drop(file)
		finished := c.collect()
		close(c.done)
		if !finished {
			c.discard()
		}
	})
	return c
}

// settle says that the command has ended: what is in the pipe, and what follows
// within QuietTime, is the rest of its output.
func (c *capture) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.until = now.Add(SettleTime)
	_ = c.file.SetReadDeadline(now.Add(QuietTime))
}

// extend gives the pipe another QuietTime after it gave something.
func (c *capture) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		return
	}
	quiet := time.Now().Add(QuietTime)
	if quiet.After(c.until) {
		quiet = c.until
	}
	_ = c.file.SetReadDeadline(quiet)
}

// truncated reports whether there was more than data holds; valid once done.
func (c *capture) truncated() bool { return c.seen > c.limit }

// collect reads until the pipe's end (true) or until the output is settled while
// somebody still holds the pipe (false).
func (c *capture) collect() bool {
	for {
		n, err := c.file.Read(c.room())
		c.count(n)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.sweep()
		case err != nil:
			return true
		}
		c.extend()
	}
}

// room is where the next bytes go: behind the data, or, once that is full, a
// scratch buffer, so that the command is not blocked while it is being ended.
func (c *capture) room() []byte {
	free := c.limit - int64(len(c.data))
	if free == 0 {
		return make([]byte, 4<<10)
	}
	if len(c.data) == cap(c.data) {
		grown := make([]byte, len(c.data), max(512, 2*cap(c.data)))
		copy(grown, c.data)
		c.data = grown
	}
	spare := c.data[len(c.data):cap(c.data)]
	return spare[:min(int64(len(spare)), free)]
}

// count takes note of n bytes that were read into room.
func (c *capture) count(n int) {
	fits := min(int64(n), c.limit-int64(len(c.data)))
	c.data = c.data[:len(c.data)+int(fits)]
	before := c.seen
	c.seen += int64(n)
	if before <= c.limit && c.seen > c.limit {
		select {
		case c.over <- struct{}{}:
		default:
		}
	}
}

// sweep takes what the pipe holds this very moment. On a busy machine the deadline
// can pass before this goroutine came to read what the command had written; a
// pipe's worth of bytes is what it may have left. It returns true at the pipe's end.
func (c *capture) sweep() (ended bool) {
	_ = c.file.SetReadDeadline(time.Time{})
	raw, err := c.file.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Read(func(fd uintptr) bool {
		left, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err != nil {
			left = 64 << 10
		}
		for left > 0 {
			n, err := unix.Read(int(fd), c.room())
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				ended = err == nil
				return true
			}
			c.count(n)
			left -= n
		}
		return true
	})
	return ended || err != nil
}

// discard keeps the pipe empty and open for a process that the command left
// running: closing it would kill that process at its next line.
func (c *capture) discard() {
	scratch := make([]byte, 4<<10)
	for {
		if _, err := c.file.Read(scratch); err != nil {
			return
		}
	}
}
