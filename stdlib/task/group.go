package task

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"ashlar/vm"
)

// MaxUnheard is how many failures of tasks that nobody joined are kept for the run's
// end; beyond it the oldest is reported at once.
const MaxUnheard = 256

// group holds the tasks of one run: those that run, by the engine's id, and those
// that failed and were not joined yet.
type group struct {
	host *vm.Host
	root *token // of the block

	tasks  *vm.Class
	tokens *vm.Class
	scopes *vm.Class

	mu     sync.Mutex
	byID   map[int]*entry
	failed map[int]*entry
	count  int
}

func newGroup(host *vm.Host) *group {
	g := &group{host: host, root: newToken(context.Background()), byID: map[int]*entry{}, failed: map[int]*entry{}}
	g.tasks, g.tokens = taskClass(g), tokenClass()
	g.scopes = scopeClass(g)
	return g
}

// add makes the entry of a task that was just spawned into sc, nil for none; its
// caller holds the VM's lock, so the task has not begun and reads its context later.
func (g *group) add(t *vm.Task, name string, sc *scope) *entry {
	parent := g.root
	if sc != nil {
		parent = sc.token
	}
	e := &entry{name: name, task: t, scope: sc, token: newToken(parent.ctx), clock: g.host.Clock, started: g.host.Clock.Now()}
	t.Ctx = withToken(withScope(t.Ctx, sc), e.token)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	e.seq = g.count
	e.id = fmt.Sprintf("t%d", g.count)
	if e.name == "" {
		e.name = e.id
	}
	g.byID[t.ID] = e
	t.Ended = func() { g.ended(e) }
	if sc != nil && sc.enter(e) {
		e.abort(0)
	}
	return e
}

// find gives the entry of a task, nil for the block itself.
func (g *group) find(t *vm.Task) *entry {
	if t == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byID[t.ID]
}

func (g *group) ended(e *entry) {
	lost := e.ended()
	e.token.cancel(nil) // frees it
	if e.scope != nil {
		e.scope.left(e)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byID, e.task.ID)
	if !lost {
		return
	}
	g.failed[e.seq] = e
	if len(g.failed) > MaxUnheard {
		g.tell(slices.Min(slices.Collect(maps.Keys(g.failed))))
	}
}

// heard forgets a failure that somebody joined.
func (g *group) heard(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.failed, e.seq)
}

// report logs the errors of tasks that nobody joined. It waits until the run's end,
// since a script may join a task long after it failed.
func (g *group) report() {
	g.root.cancel(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, seq := range slices.Sorted(maps.Keys(g.failed)) {
		g.tell(seq)
	}
}

// tell reports one failure; mu is held.
func (g *group) tell(seq int) {
	e := g.failed[seq]
	delete(g.failed, seq)
	g.host.Log("warn", fmt.Sprintf("task %s failed, and nobody joined it: %s", e.name, g.host.Redact(e.task.Err.Error())),
		map[string]any{"task": e.id, "name": e.name})
}
