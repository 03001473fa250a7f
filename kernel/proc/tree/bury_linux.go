package tree

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// FreezeTime is how long a scope that shows no new member may take to come to a
	// stop before it is killed as it is. A process that waits inside the kernel does
	// not stop. As long as new members appear the scope is still growing, and killing
	// the part that was seen would only leave room for the rest.
	FreezeTime = 25 * time.Millisecond
	// firstPause and lastPause bound the wait between two looks; it doubles.
	firstPause = 200 * time.Microsecond
	lastPause  = 5 * time.Millisecond
)

// Alive lists the members that still run.
func (s Scope) Alive() []Process {
	var alive []Process
	for _, p := range s.Members() {
		if !p.dead() {
			alive = append(alive, p)
		}
	}
	return alive
}

// Terminate asks every member to end (SIGTERM), and continues those that are
// stopped, so that they can. It does not wait. It returns how many it asked.
func (s Scope) Terminate() int {
	alive := s.Alive()
	for _, p := range alive {
		send(p, unix.SIGTERM)
		if p.stopped() {
			send(p, unix.SIGCONT)
		}
	}
	return len(alive)
}

// Bury kills every member and waits until none runs, for at most limit. It returns
// how many then still run: 0, unless the kernel holds one in an uninterruptible
// call or it belongs to another user. It reaps nobody: that is the parent's.
func (s Scope) Bury(limit time.Duration) int {
	deadline := time.Now().Add(limit)
	for {
		killed := s.freeze(deadline)
		for _, p := range killed {
			send(p, unix.SIGKILL)
		}
		left := s.awaitDeath(killed, deadline)
		if left == 0 || !time.Now().Before(deadline) {
			return left
		}
	}
}

// freeze stops the members and returns them.
func (s Scope) freeze(limit time.Time) []Process {
	known := make(map[Process]bool)
	deadline := time.Now().Add(FreezeTime)
	pause := firstPause
	for quiet := 0; ; {
		alive := s.Alive()
		moving, grown := false, false
		for _, p := range alive {
			if !p.stopped() {
				moving = true
				send(p, unix.SIGSTOP)
			}
			grown = grown || !known[identity(p)]
			known[identity(p)] = true
		}
		now := time.Now()
		if grown {
			deadline, pause = now.Add(FreezeTime), firstPause
		}
		// One look is not enough: a member may have forked after its child's place in
		// the list was passed and before it stopped itself. The second sees the child.
		if quiet++; moving {
			quiet = 0
		}
		if len(alive) == 0 || quiet == 2 || !now.Before(deadline) || !now.Before(limit) {
			return alive
		}
		if moving && !grown {
			time.Sleep(pause)
			pause = min(2*pause, lastPause)
		}
	}
}

// awaitDeath returns 0 once no member runs, or how many do when time is up or when
// one appeared that was not among the killed.
func (s Scope) awaitDeath(killed []Process, deadline time.Time) int {
	known := make(map[Process]bool, len(killed))
	for _, p := range killed {
		known[identity(p)] = true
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		alive := s.Alive()
		if len(alive) == 0 || !time.Now().Before(deadline) {
			return len(alive)
		}
		for _, p := range alive {
			if !known[identity(p)] {
				return len(alive)
			}
		}
		time.Sleep(pause)
	}
}

// identity is what does not change in a process's life.
func identity(p Process) Process { return Process{PID: p.PID, Start: p.Start} }

// send signals the process that was looked at. Whatever happened to it in between
// is fine: the next look tells.
func send(p Process, signal unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ENOSYS) { // before Linux 5.3
		if now, ok := look(p.PID); ok && now.Start == p.Start {
			_ = unix.Kill(p.PID, signal)
		}
		return
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// The descriptor pins a process; the start time says that it is the right one.
	if now, ok := look(p.PID); ok && now.Start == p.Start {
		_ = unix.PidfdSendSignal(fd, signal, nil, 0)
	}
}
