package lua

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// Limits bound what one script may use. Zero values stand for the defaults of
// package vm.
type Limits struct {
	StringBytes int // one string made by a builtin
	SourceBytes int // source of one chunk
	Nesting     int // brackets and blocks of source
	CallDepth   int // Lua calls within one thread
}

// Options configure an engine beyond its host.
type Options struct {
	Limits Limits

	// Digest hashes syscall arguments that the journal does not keep, and KindOf
	// gives the error kind and the shown text of a host error that is no *vm.Error.
	// Nil stands for a plain hash and for kind internal.
	Digest func([]vm.Value) string
	KindOf func(error) (kind, message string)

	// OnFault is told the cause when a syscall ends the whole run (*vm.Exit and
	// *vm.Fault), before Lua unwinds. It must not block.
	OnFault func(error)
}

// Bounds of a Lua thread. The registry is the value stack of all active calls.
const (
	defaultCallDepth = 8192
	threadRegistry   = 128
	maxRegistry      = 1 << 20
	registryStep     = 1024
	spareThreads     = 128
)

// errClosed is the cause that Close cancels with.
var errClosed = errors.New("the script engine was closed")

// Engine runs the Lua of one run. Its methods are safe for concurrent use.
type Engine struct {
	host   *vm.Host
	opts   Options
	dispat *vm.Dispatcher
	sched  sched

	// Under the lock.
	proto   *glua.LState   // the parent of every thread; runs nothing itself
	spare   []*glua.LState // threads to be used again
	lib     libs
	bridge  bridge
	classes map[*vm.Class]*glua.LTable
	live    map[*coroutine]struct{}
	started time.Time // of Run, for os.clock

	idleMu sync.Mutex
	idle   *sync.Cond // a lent strand was given back

	fatal atomic.Pointer[error] // the cause that no pcall may hold

	mu     sync.Mutex
	root   context.Context // of every task; nil before Run
	stop   context.CancelCauseFunc
	tasks  map[int]*vm.Task
	nextID int
	guests int
	closed bool
	once   sync.Once    // closes the modules
	dead   []*coroutine // unreachable from scripts; unwound at the next chance
}

var _ vm.Engine = (*Engine)(nil)

// New makes the engine of one run, with the host's modules as globals. Errors are
// of kind validation: a module declared twice, or a value that cannot cross.
func New(host *vm.Host, opts Options) (*Engine, error) {
	opts.Limits = opts.Limits.withDefaults()
	if opts.Digest == nil {
		opts.Digest = func(args []vm.Value) string { return fmt.Sprintf("%v", args) }
	}
	if opts.KindOf == nil {
		opts.KindOf = func(err error) (string, string) { return "internal", err.Error() }
	}
	e := &Engine{
		host:    host,
		opts:    opts,
		sched:   sched{journal: host.Journal},
		classes: map[*vm.Class]*glua.LTable{},
		live:    map[*coroutine]struct{}{},
		tasks:   map[int]*vm.Task{},
	}
	e.sched.order, _ = host.Journal.(vm.Replay)
	e.sched.live = func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.tasks)
	}
	e.idle = sync.NewCond(&e.idleMu)
	e.dispat = vm.NewDispatcher(host, e, opts.Digest, opts.KindOf)
	e.proto = glua.NewState(glua.Options{
		SkipOpenLibs:        true,
		CallStackSize:       opts.Limits.CallDepth,
		MinimizeStackMemory: true,
		RegistrySize:        threadRegistry,
		RegistryMaxSize:     maxRegistry,
		RegistryGrowStep:    registryStep,
	})
	e.proto.G.MainThread = e.proto
	e.proto.G.CurrentThread = e.proto
	if err := e.openLibs(); err != nil {
		return nil, err
	}
	return e, nil
}

func (l Limits) withDefaults() Limits {
	def := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	def(&l.StringBytes, vm.MaxStringBytes)
	def(&l.SourceBytes, vm.MaxSourceBytes)
	def(&l.Nesting, vm.MaxNesting)
	def(&l.CallDepth, defaultCallDepth)
	return l
}

// Run runs a chunk as task 0 and gives the first value that it returns. A table
// crosses as data. With its end every other task is cut. It may be called once.
func (e *Engine) Run(ctx context.Context, chunk vm.Chunk) (vm.Value, error) {
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	main, ok := e.newTask(e.root, "main", false)
	if !ok {
		return nil, errClosed
	}
	defer e.endTask(main)
	e.sched.acquire(main.ID)
	s := e.newStrand(main.Ctx, e.newThread(), main)
	s.holds.Store(true)
	out, err := e.runMain(s, chunk)
	cut := e.root.Err() != nil
	// Before anybody else has the lock: what a task does after the end would be chance.
	e.Interrupt(errClosed)
	e.retire(s, false)
	if cause := e.fatal.Load(); cause != nil {
		return nil, *cause
	}
	if err != nil {
		if cut {
			return nil, context.Cause(e.root)
		}
		return nil, e.redacted(err)
	}
	return out, nil
}

func (e *Engine) begin(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.root != nil {
		return vm.Errorf("validation", "an engine runs one chunk; make another engine")
	}
	e.root, e.stop = context.WithCancelCause(ctx)
	if e.sched.order != nil {
		context.AfterFunc(e.root, e.sched.free) // what is stopped unwinds as it comes
	}
	if e.closed {
		e.stop(errClosed)
	}
	e.started = e.host.Clock.Now()
	return nil
}

func (e *Engine) runMain(s *strand, chunk vm.Chunk) (vm.Value, error) {
	fn, err := e.compile(chunk)
	if err != nil {
		return nil, err
	}
	rets, err := s.call(fn, nil)
	if err != nil {
		return nil, err
	}
	if len(rets) == 0 {
		return nil, nil
	}
	v, err := e.fromLua(s, rets[0], false)
	if err != nil {
		return nil, vm.Errorf("validation", "the block's result: %s", err.Error())
	}
	return v, nil
}

// fault ends the run with a cause that no pcall can hold.
func (e *Engine) fault(cause error) {
	if e.fatal.CompareAndSwap(nil, &cause) {
		if e.opts.OnFault != nil {
			e.opts.OnFault(cause)
		}
		e.Interrupt(cause)
	}
}

// Interrupt cancels every task with a cause. It needs no lock.
func (e *Engine) Interrupt(cause error) {
	e.mu.Lock()
	stop := e.stop
	e.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

// Close cancels every task and waits for each, then unwinds the coroutines that
// are left. abandoned counts the tasks that had not ended when ctx did; their
// goroutines, and the engine's memory, stay until the Go code that holds them
// returns.
func (e *Engine) Close(ctx context.Context) (abandoned int) {
	e.mu.Lock()
	e.closed = true
	stop := e.stop
	left := make([]*vm.Task, 0, len(e.tasks))
	for _, t := range e.tasks {
		left = append(left, t)
	}
	e.mu.Unlock()
	if stop != nil {
		stop(errClosed)
	}
	sort.Slice(left, func(i, j int) bool { return left[i].ID < left[j].ID })
	for _, t := range left {
		select {
		case <-t.Done:
		default:
			select {
			case <-t.Done:
			case <-ctx.Done():
				abandoned++
			}
		}
	}
	if abandoned == 0 {
		e.sched.acquire(0)
		e.unwindAll()
		e.sched.release()
	}
	e.once.Do(func() {
		for _, m := range e.host.Modules {
			if m.Close != nil {
				m.Close()
			}
		}
	})
	return abandoned
}

// newThread gives a Lua thread that shares the engine's globals; the lock is held.
func (e *Engine) newThread() *glua.LState {
	if n := len(e.spare); n > 0 {
		L := e.spare[n-1]
		e.spare[n-1] = nil
		e.spare = e.spare[:n-1]
		return L
	}
	// proto has no context, so NewThread derives none that would have to be
	// cancelled to be freed.
	L, _ := e.proto.NewThread()
	return L
}

// keepThread takes back a thread whose last call returned normally. One that was
// unwound by a panic may have upvalues that still point into it.
func (e *Engine) keepThread(L *glua.LState) {
	if len(e.spare) < spareThreads {
		L.RemoveContext()
		L.SetTop(0)
		L.Env = e.proto.Env // setfenv(0, …) may have changed it
		e.spare = append(e.spare, L)
	}
}
