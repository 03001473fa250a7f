package knl

import (
	"context"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
	"ashlar/vm"
)

// queryMethod declares session:query, but for its implementation.
func queryMethod() vm.Function {
	return vm.Function{
		Name: "query",
		Doc: "Answers one SELECT (or WITH) over the view events, which holds whole objects: json_extract(data, '$.x'). " +
			"$stream is this session, IN $sessions the ones named. Gives rows by column, without null ones, and whether there are more.",
		Params: []vm.Param{
			{Name: "sql", Type: vm.String},
			{Name: "params", Type: vm.Table, Optional: true, Doc: "a list for each ?, or a table by name for :n @n $n"},
			{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
				{Name: "sessions", Type: vm.List, Optional: true, Doc: "the ids of $sessions; default: this session"},
				{Name: "timeout_ms", Type: vm.Integer, Optional: true, Doc: "default 5000, at most 60000"},
				{Name: "limit", Type: vm.Integer, Optional: true, Doc: "rows; default 1000, at most 10000"},
			}},
		},
		Results: []vm.Param{{Name: "rows", Type: vm.List}, {Name: "truncated", Type: vm.Boolean}},
		Effect:  vm.Read, Record: vm.RecordResult, Waits: true,
	}
}

func query(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
	q, err := question(c, s)
	if err != nil {
		return nil, err
	}
	from, ok := s.Store().(store.Querier)
	if !ok {
		return nil, vm.Errorf(string(kernel.Unsupported), "the store %s answers no SQL", s.Store().URL())
	}
	a, err := from.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := make([]any, len(a.Rows))
	for i, r := range a.Rows {
		m := make(map[string]any, len(r))
		for k, v := range r {
			if v != nil {
				m[a.Columns[k]] = v
			}
		}
		rows[i] = m
	}
	return []vm.Value{rows, a.Truncated}, nil
}

// question reads the arguments. A bound that is given is never taken for one that is not:
// limit = 0 and timeout_ms = 0 are refused.
func question(c *vm.Call, s *session.Session) (store.Question, error) {
	q := store.Question{SQL: c.Str(0), Stream: s.ID(), Sessions: []string{s.ID()}}
	switch p := c.Args[1].(type) {
	case []any:
		q.Params = p
	case map[string]any:
		q.Named = p
	}
	o := c.Map(2)
	for _, key := range []string{"limit", "timeout_ms"} {
		if _, given := o[key]; given && o.Int(key, 0) < 1 {
			return q, vm.Errorf(string(kernel.Validation), "%s is %d; it is at least 1", key, o.Int(key, 0))
		}
	}
	q.Limit = int(min(o.Int("limit", 0), store.MaxQueryRows+1))
	most := store.MaxQueryTimeout.Milliseconds() + 1
	q.Timeout = time.Duration(min(o.Int("timeout_ms", 0), most)) * time.Millisecond
	if list, given := o["sessions"].([]any); given {
		if len(list) == 0 {
			return q, vm.Errorf(string(kernel.Validation), "sessions is empty; leave it out for this session")
		}
		q.Sessions = q.Sessions[:0]
		for i, v := range list {
			id, ok := v.(string)
			if !ok {
				return q, vm.Errorf(string(kernel.Validation), "sessions[%d] is %s, not a session's id", i+1, vm.TypeName(v))
			}
			q.Sessions = append(q.Sessions, id)
		}
	} else if _, given := o["sessions"]; given {
		return q, vm.Errorf(string(kernel.Validation), "sessions is empty; leave it out for this session")
	}
	return q, nil
}
