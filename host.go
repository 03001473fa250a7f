package ashlar

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/ident"
	"ashlar/kernel/proc"
	"ashlar/kernel/redact"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
	"ashlar/kernel/tool"
	"ashlar/kernel/trace"
	"ashlar/stdlib"
	httpmod "ashlar/stdlib/http"
	"ashlar/stdlib/knl"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/record"
	"ashlar/stdlib/sh"
	"ashlar/vm"
)

// live is one run while it runs: what its script's host is made of.
type live struct {
	*Run
	handle  *run.Handle
	who     trace.Identity
	spans   *spans // nil where no collector is configured
	store   store.Store
	env     *environment
	emit    *emitter
	starter *proc.Starter
	again   *replaying // nil on a live run
	stdout  *output    // what the script writes
	stderr  *output

	mu    sync.Mutex
	books map[string]*session.Book // by store URL
	usage map[string]any           // totals, as in run_finished
}

// output is a stream that a script writes to, from any of its tasks. A secret that
// two writes share is held back until it is whole.
type output struct {
	mu sync.Mutex
	w  *redact.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// flush writes what is held, at the end of the script; not where a script that did
// not stop is in the middle of a write.
func (o *output) flush() {
	if o.mu.TryLock() {
		defer o.mu.Unlock()
		_ = o.w.Close() // nobody is left to be told
	}
}

// clock is the run's time over the workspace's.
type clock struct{ ident.Clock }

// Sleep implements vm.Clock.
func (clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// host makes what the run lends its script.
func (l *live) host(ctx context.Context, seam llm.Seam, player *record.Player) *vm.Host {
	ws := l.ws
	files := ws.area()
	h := &vm.Host{
		Script: l.block, Dir: ws.project, Clock: clock{ws.opts.Clock}, Rand: ws.opts.Rand, Env: l.env, Files: files,
		Stdin: ws.opts.Stdin, Stdout: l.stdout, Stderr: l.stderr, Loader: l.loader,
		Redact: ws.redact.String, Log: l.log, Globals: l.globals(),
	}
	price := ws.price
	switch {
	case l.again != nil:
		h.Journal, h.Clock, price = l.again, l.again, l.again.price
	case !l.task.NoJournal:
		h.Journal, h.Loader, price = journal{l.handle}, l.digesting(), l.pricing()
	}
	bus := &tool.Bus{
		Registry: tool.NewRegistry(), Observer: observer{l.emit, l.observe(trace.Tool)}, Redact: ws.redact.String, Now: ws.opts.Clock.Now,
		Warn: func(text string) { l.log("warn", text, nil) },
	}
	sender := &llm.Sender{
		Directory: l.directory(ctx, l.env, player), Seam: seam, Now: ws.opts.Clock.Now, Sleep: clock{}.Sleep, Delta: l.emit.delta,
		Price: ws.price, Pool: l.handle, Usage: func(session, beat string, f map[string]any) { l.fact("usage", session, beat, f) },
		Partial: func(session, beat string, f map[string]any) { l.fact("assistant_message", session, beat, f) },
	}
	kern := &knl.Kernel{
		Price: price, Book: l.book, Bus: bus, IDs: ws.ids, Now: ws.opts.Clock.Now, Labels: l.task.Labels, Emit: l.fact,
	}
	sender.Beats = kern
	h.Modules = stdlib.Modules(stdlib.Needs{
		Host: h, AgentID: ws.environ["ASHLAR_AGENT_ID"], Files: files, Bus: bus, Pool: l.handle, Kernel: kern, Sender: sender, Learn: ws.redact.Add,
		Client: httpmod.Client{HTTP: ws.opts.Client, Trace: l.trace(), Observe: l.observe(trace.HTTP), Now: ws.opts.Clock.Now, Keep: l.keep,
			Timeout: ws.limitMS("http_timeout"), MaxBody: ws.config.Limits["http_body"]},
		Shell: sh.Shell{Starter: l.starter, Environ: l.children, Keep: l.keep,
			Timeout: ws.limitMS("sh_timeout"), MaxOutput: ws.config.Limits["sh_output"]},
	})
	return h
}

// trace gives the correlation headers of http.
func (l *live) trace() map[string]string {
	env := l.ws.environ
	return map[string]string{
		"x-trace-id": env["ASHLAR_TRACE_ID"], "x-run-id": firstOf(env["ASHLAR_RUN_ID"], l.handle.ID()),
		"x-agent-id": env["ASHLAR_AGENT_ID"], "x-agent-name": env["ASHLAR_AGENT_NAME"],
	}
}

func (l *live) globals() map[string]vm.Value {
	g := map[string]vm.Value{}
	for name, v := range l.task.Globals {
		g[name] = v
	}
	g["_SCRIPT_NAME"] = l.block
	if l.task.Prompt != nil {
		g["_PROMPT"] = *l.task.Prompt
	}
	if l.task.Context != nil {
		g["_CONTEXT"] = *l.task.Context
	}
	if b := l.given; l.task.Agent && (b.Beats > 0 || b.Tokens > 0) && g["_AGENT_PROFILE"] == nil {
		// A bound on what the model may do leaves the agent's own cap unset, so that
		// reaching it is the run's ending.
		g["_AGENT_PROFILE"] = map[string]any{"max_iterations": false}
	}
	return g
}

// children is the environment that a command starts from.
func (l *live) children(add map[string]string) []string {
	set := map[string]string{"ASHLAR_PARENT_RUN": l.handle.ID(), "ASHLAR_HOME": l.ws.home, "ASHLAR_TRACE_ID": l.who.TraceID}
	for name, value := range add {
		set[name] = value
	}
	return proc.Environment{Parent: list(l.ws.environ), Set: set}.List()
}

func (l *live) keep(ctx context.Context, b []byte) string {
	hash, err := knl.Keep(ctx, l.store, b)
	if err != nil {
		return ""
	}
	return hash
}

// book gives the sessions of a store option.
func (l *live) book(ctx context.Context, option vm.Value) (*session.Book, error) {
	url := l.ws.url
	switch o := option.(type) {
	case nil:
	case string:
		if o != "mem" {
			return nil, vm.Errorf(string(kernel.Validation), "store is %q; it may be \"mem\" or {sqlite = path}", o)
		}
		url = "mem:" + "shared"
	case map[string]any:
		path, ok := o["sqlite"].(string)
		if !ok || len(o) != 1 {
			return nil, vm.Errorf(string(kernel.Validation), "store is a table without sqlite = path")
		}
		var err error
		if url, err = l.sqliteURL(path); err != nil {
			return nil, err
		}
	default:
		return nil, vm.Errorf(string(kernel.Validation), "store is %s; it may be \"mem\" or {sqlite = path}", vm.TypeName(option))
	}
	s, err := l.open(ctx, url)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.books[url]; ok {
		return b, nil
	}
	b := session.NewBook(session.Options{Store: s, IDs: l.ws.ids, PID: l.ws.pid(), Run: l.handle})
	l.books[url] = b
	return b, nil
}

// open opens a store of the script's sessions.
func (l *live) open(ctx context.Context, url string) (store.Store, error) {
	if l.again != nil {
		return l.again.open(ctx, url)
	}
	return l.ws.open(ctx, url)
}

func (l *live) openBooks() []*session.Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*session.Book
	for _, b := range l.books {
		all = append(all, b)
	}
	return all
}

// storesOf lists the stores that the run's sessions live in.
func (l *live) storesOf() []store.Store {
	all := []store.Store{l.store}
	for _, b := range l.openBooks() {
		if b.Store() != l.store {
			all = append(all, b.Store())
		}
	}
	return all
}

// fact sends a fact of a beat and adds usage up.
func (l *live) fact(typ, session, beat string, fields map[string]any) {
	if typ == "usage" {
		l.mu.Lock()
		for key, v := range fields {
			if n, ok := v.(int64); ok {
				have, _ := l.usage[key].(int64)
				l.usage[key] = have + n
			} else {
				l.usage[key] = v
			}
		}
		l.mu.Unlock()
	}
	l.emit.emit(typ, session, beat, fields)
}

// total is the usage so far, a copy.
func (l *live) total() map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.usage)
}

// log writes a script's log line to stderr.
func (l *live) log(level, msg string, _ map[string]any) {
	if !l.ws.logs(level) {
		return
	}
	// Redacted before it is cut, so that no half of a secret stays.
	msg = l.ws.redact.String(msg)
	if over := len(msg) - MaxLogLine; over > 0 {
		end := MaxLogLine
		for end > 0 && !utf8.RuneStart(msg[end]) {
			end--
		}
		msg = fmt.Sprintf("%s… [%d more bytes]", msg[:end], len(msg)-end)
	}
	_, _ = io.WriteString(l.ws.opts.Stderr, level+": "+Printable(msg)+"\n")
}

// observer puts tool calls on the event stream, and into the lines of obs.
type observer struct {
	emit *emitter
	obs  func(event string, more ...trace.Field)
}

// ToolCalled implements tool.Observer.
func (o observer) ToolCalled(c tool.Call) {
	caps := []any{}
	if c.Tool != nil {
		for _, name := range c.Tool.Contract.Capabilities {
			caps = append(caps, name)
		}
	}
	o.emit.emit("tool_call", c.Session, c.Beat, map[string]any{
		"call_id": c.ID, "tool": c.Name, "arguments": plain(c.Args), "capabilities": caps,
	})
	o.obs("tool_call", called(c)...)
}

// ToolEnded implements tool.Observer.
func (o observer) ToolEnded(c tool.Call, r tool.Result) {
	f := map[string]any{"call_id": c.ID, "tool": c.Name, "ok": r.OK, "output": plain(r.Model), "duration_ms": r.Duration.Milliseconds()}
	if r.Kind != "" {
		f["kind"] = r.Kind
	}
	if r.Truncated != nil {
		f["truncated"] = map[string]any{"bytes": int64(r.Truncated.Bytes), "handle": r.Truncated.Handle}
	}
	o.emit.emit("tool_result", c.Session, c.Beat, f)
	o.obs("tool_result", resulted(c, r)...)
}

// seam is where model traffic leaves, or is answered.
func (l *live) seam(client *http.Client) (llm.Seam, error) {
	s := llm.Seam{Client: client}
	var err error
	switch {
	case l.task.Replay != "":
		if s.Player, err = record.Open(l.task.Replay); err == nil {
			s.Player.Redact = l.ws.redact.Bytes
		}
	case l.task.Record != "":
		s.Record, err = record.Create(l.task.Record, Version, l.digest, l.ws.redact.Bytes)
	}
	return s, err
}
