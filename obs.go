package ashlar

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"ashlar/kernel/tool"
	"ashlar/kernel/trace"
)

// identity says who a run is to those who correlate it with others: what the caller's
// environment names, else what is made for this run. A trace that the caller began by
// a traceparent alone goes on under its id.
func (r *Run) identity(id string) (trace.Identity, error) {
	env := r.ws.environ
	who := trace.Identity{
		TraceID: env["ASHLAR_TRACE_ID"], RunID: firstOf(env["ASHLAR_RUN_ID"], id),
		AgentID: env["ASHLAR_AGENT_ID"], AgentName: env["ASHLAR_AGENT_NAME"],
	}
	if parent, ok := r.ws.parentSpan(); ok && who.TraceID == "" {
		who.TraceID = hex.EncodeToString(parent.TraceID[:])
	}
	for _, missing := range []struct {
		to   *string
		make func() (string, error)
	}{
		{&who.TraceID, func() (string, error) { return r.ws.ids.Hex(16) }},
		{&who.AgentID, r.ws.ids.Random},
	} {
		if *missing.to != "" {
			continue
		}
		var err error
		if *missing.to, err = missing.make(); err != nil {
			return who, err
		}
	}
	return who, nil
}

// own reads a variable of the process's own environment: one that a project's .env may
// not decide.
func (w *Workspace) own(name string) string {
	for _, kv := range w.opts.Environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// parentSpan is the span that the caller says the process was started in.
func (w *Workspace) parentSpan() (trace.Parent, bool) { return trace.ParseParent(w.own("TRACEPARENT")) }

// logLevels are what ASHLAR_LOG may say, from the most to the least that is printed.
func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

// DefaultLogLevel is the level from which lines are printed where ASHLAR_LOG says none.
const DefaultLogLevel = "info"

// logs reports whether lines of a level are printed.
func (w *Workspace) logs(level string) bool {
	from := slices.Index(logLevels(), w.environ["ASHLAR_LOG"])
	if from < 0 {
		from = slices.Index(logLevels(), DefaultLogLevel)
	}
	return slices.Index(logLevels(), level) >= from
}

// logLevelNotice says so where ASHLAR_LOG names no level.
func (w *Workspace) logLevelNotice() {
	if set := w.environ["ASHLAR_LOG"]; set != "" && !slices.Contains(logLevels(), set) {
		w.opts.Notice("ASHLAR_LOG is " + strconv.Quote(set) + "; it may be debug, info, warn or error: " + DefaultLogLevel + " is used")
	}
}

// observe gives what writes the observability lines of a component, at level debug.
func (l *live) observe(component string) func(event string, more ...trace.Field) {
	if !l.ws.logs("debug") {
		return func(string, ...trace.Field) {}
	}
	return func(event string, more ...trace.Field) { l.log("debug", l.who.Line(event, component, more...), nil) }
}

// ToolRegistered implements the observer of stdlib/tool.
func (o observer) ToolRegistered(c tool.Contract) {
	f := []trace.Field{{Key: "tool", Value: c.Name}}
	if c.Group != "" {
		f = append(f, trace.Field{Key: "group", Value: c.Group})
	}
	o.obs("tool_register", f...)
}

// called names a call in a line; what it was called with stays out.
func called(c tool.Call, more ...trace.Field) []trace.Field {
	f := []trace.Field{{Key: "tool", Value: c.Name}}
	for _, id := range []trace.Field{{Key: "call_id", Value: c.ID}, {Key: "session", Value: c.Session}, {Key: "beat", Value: c.Beat}} {
		if id.Value != "" {
			f = append(f, id)
		}
	}
	return append(f, more...)
}

// resulted says how a call ended.
func resulted(c tool.Call, r tool.Result) []trace.Field {
	f := called(c, trace.Field{Key: "ok", Value: strconv.FormatBool(r.OK)})
	if r.Kind != "" {
		f = append(f, trace.Field{Key: "kind", Value: r.Kind})
	}
	return append(f, trace.Field{Key: "duration_ms", Value: strconv.FormatInt(r.Duration.Milliseconds(), 10)})
}
