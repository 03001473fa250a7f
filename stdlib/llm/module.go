package llm

import (
	"context"
	"strings"
	"time"
	"unicode"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/redact"
	"ashlar/vm"
)

// Log is the part of a session that a call writes to: its retries.
type Log interface {
	ID() string
	Append(ctx context.Context, drafts ...event.Draft) ([]int64, error)
}

var askFields = []vm.Param{
	{Name: "provider", Type: vm.String, Optional: true, Doc: "a provider's name; `ashlar doctor` lists them"},
	{Name: "model", Type: vm.String, Optional: true, Doc: "a model, or PROVIDER/MODEL"},
	{Name: "base_url", Type: vm.String, Optional: true},
	{Name: "api_key", Type: vm.String, Optional: true, Doc: "better: api_key_env"},
	{Name: "api_key_env", Type: vm.String, Optional: true, Doc: "the variable that holds the key"},
	{Name: "dialect", Type: vm.String, Optional: true, Doc: "openai, vllm, llamacpp or ollama; guessed from the URL"},
}

// Module declares the namespace over a run's Sender. learn teaches the redactor a
// key that a script brings.
func Module(s *Sender, learn func(name, value string)) *vm.Module {
	if s != nil && s.Directory != nil && s.Directory.Learn == nil {
		s.Directory.Learn = learn
	}
	m := &vm.Module{
		Name: "llm",
		Doc:  "The model boundary. Keys are added here and never enter a script; the body that comes back is the provider's non-streamed form.",
		Funcs: append([]vm.Function{
			{
				Name: "resolve", Doc: "Where a call would go: {provider, kind, model, base_url, dialect}. The block's options win over flags, environment, config and what is found here.",
				Params:  []vm.Param{{Name: "ask", Type: vm.Options, Optional: true, Fields: askFields}},
				Results: []vm.Param{{Name: "target", Type: vm.Map}},
				Effect:  vm.Read, Capability: "net.http", Waits: true, Record: vm.RecordResult, Again: learning(0, learn),
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					t, err := s.Directory.Resolve(askOf(c.Map(0), learn))
					if err != nil {
						return nil, err
					}
					return []vm.Value{map[string]any{
						"provider": t.Provider, "kind": t.Kind, "model": t.Model, "base_url": t.BaseURL, "dialect": t.Dialect,
					}}, nil
				},
			},
			{
				Name: "send",
				Doc: "Sends a request's body and waits for the whole reply: {status, headers, body, notes}. Any status is a reply; raises where none came. " +
					"A retry is recorded in the session before it leaves. Outside a beat it takes from the run's budget: refused where that does not cover it.",
				Params: []vm.Param{
					{Name: "body", Type: vm.Map},
					{Name: "opts", Type: vm.Options, Optional: true, Fields: append([]vm.Param{
						{Name: "path", Type: vm.String, Optional: true, Doc: "below the base URL; default chat/completions, or v1/messages"},
						{Name: "headers", Type: vm.Map, Optional: true},
						{Name: "timeout", Type: vm.Number, Optional: true, Doc: "seconds for one attempt; default 120"},
						{Name: "progress_timeout", Type: vm.Number, Optional: true, Doc: "seconds without data; default 60"},
						{Name: "max_retries", Type: vm.Integer, Optional: true, Doc: "default 2"},
						{Name: "on_delta", Type: vm.Callable, Optional: true, Doc: "on_delta(text, kind), kind text or thinking"},
						{Name: "session", Type: vm.Handle, Class: "session", Optional: true},
						{Name: "beat", Type: vm.String, Optional: true},
						{Name: "defaults", Type: vm.Map, Optional: true, Doc: "what the port filled in, recorded once in the session"},
					}, askFields...)},
				},
				Results: []vm.Param{{Name: "reply", Type: vm.Map}},
				Effect:  vm.Write, Record: vm.RecordResult, Capability: "net.http", Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return s.send(ctx, c, learn) },
				Again: func(ctx context.Context, c *vm.Call, old vm.Entry) ([]vm.Value, error) {
					return s.again(ctx, c, old, learn)
				},
			},
			usageFunction(), textCallsFunction(),
		}, append(s.about(learn), extraction()...)...),
	}
	if s != nil {
		m.Close = s.Close
	}
	return m
}

func askOf(o vm.Opts, learn func(name, value string)) Ask {
	a := Ask{
		Provider: o.Str("provider", ""), Model: o.Str("model", ""), BaseURL: o.Str("base_url", ""),
		Key: o.Str("api_key", ""), KeyEnv: o.Str("api_key_env", ""), Dialect: o.Str("dialect", ""),
	}
	if a.Key != "" {
		learn("api_key", a.Key)
	}
	return a
}

func (s *Sender) send(ctx context.Context, c *vm.Call, learn func(name, value string)) ([]vm.Value, error) {
	o := c.Map(1)
	call := Call{
		Ask: askOf(o, learn), Path: o.Str("path", ""), Body: c.Map(0), Beat: o.Str("beat", ""), Task: c.Task, Step: c.Step,
		Retries: int(o.Int("max_retries", DefaultRetries)),
	}
	var err error
	if call.Timeout, err = seconds(o, "timeout", DefaultTimeout); err != nil {
		return nil, err
	}
	if call.Progress, err = seconds(o, "progress_timeout", DefaultProgress); err != nil {
		return nil, err
	}
	if call.Retries < 0 || call.Retries > MaxRetries {
		return nil, vm.Errorf(string(kernel.Validation), "opts.max_retries must be 0 to %d, got %d", MaxRetries, call.Retries)
	}
	if call.Headers, err = headers(o, learn); err != nil {
		return nil, err
	}
	if fn := o.Func("on_delta"); fn != nil {
		call.OnDelta = func(ctx context.Context, kind, text string) error {
			_, err := fn.Call(ctx, text, kind)
			return err
		}
	}
	if obj, ok := o["session"].(*vm.Object); ok {
		log, ok := obj.Data.(Log)
		if !ok {
			return nil, vm.Errorf(string(kernel.Validation), "opts.session is no session")
		}
		call.Session = log.ID()
		keep := func(ctx context.Context, kind string, data map[string]any) error {
			c.Step(stepEvent, kind, data)
			return commit(ctx, log, call.Beat, kind, data)
		}
		call.OnRetry = func(ctx context.Context, r Retry) error { return keep(ctx, event.LLMRetry, r.data()) }
		call.OnFallback = func(ctx context.Context, f Fallback) error {
			return keep(ctx, event.LLMFallback, map[string]any{"without": f.Without, "status": int64(f.Status)})
		}
		call.OnPartial = func(ctx context.Context, p Partial) error {
			return keep(ctx, event.LLMPartial, map[string]any{"content": p.content(), "reason": p.Reason})
		}
		if err := s.defaulted(log, o["defaults"], func(data map[string]any) error { return keep(ctx, event.LLMDefaults, data) }); err != nil {
			return nil, err
		}
	}
	unpack(call.Body)
	reply, err := s.Send(ctx, call)
	if err != nil {
		return nil, err
	}
	reply.Notes["request_bytes"] = int64(reply.Sent)
	return []vm.Value{map[string]any{
		"status": int64(reply.Status), "headers": reply.Headers, "body": reply.Body, "notes": reply.Notes,
	}}, nil
}

// unpack puts the messages that were encoded before in their places.
func unpack(body map[string]any) {
	list, _ := body["messages"].([]any)
	for i, v := range list {
		if o, ok := v.(*vm.Object); ok {
			if p, ok := o.Data.(*logjson.Packed); ok {
				list[i] = p
			}
		}
	}
}

// data is what llm_retry holds.
func (r Retry) data() map[string]any {
	data := map[string]any{"attempt": int64(r.Attempt), "kind": r.Kind, "wait_ms": r.Wait.Milliseconds()}
	if r.Status != 0 {
		data["status"] = int64(r.Status)
	}
	return data
}

// commit appends one event about a call.
func commit(ctx context.Context, log Log, beat, kind string, data map[string]any) error {
	d := event.Draft{Kind: kind, Data: data}
	if beat != "" {
		d.Meta = map[string]any{"beat": beat}
	}
	_, err := log.Append(ctx, d)
	return err
}

// defaulted gives keep llm_defaults{max_tokens, …}: what of a session's requests nobody
// asked for. It is said once, and again when it changes.
func (s *Sender) defaulted(log Log, given vm.Value, keep func(data map[string]any) error) error {
	data, _ := given.(map[string]any)
	if len(data) == 0 {
		return nil
	}
	text, err := logjson.Marshal(data)
	if err != nil {
		return err
	}
	if !s.told.changes(log.ID(), string(text)) {
		return nil
	}
	return keep(data)
}

func seconds(o vm.Opts, key string, def time.Duration) (time.Duration, error) {
	if o[key] == nil {
		return def, nil
	}
	v := o.Float(key, 0)
	if v <= 0 || v > 1e6 {
		return 0, vm.Errorf(string(kernel.Validation), "opts.%s must be more than 0 seconds, got %v", key, v)
	}
	return time.Duration(v * float64(time.Second)), nil
}

// headers reads the option headers; the value of one that is named like a credential
// is learnt, with and without its scheme.
func headers(o vm.Opts, learn func(name, value string)) (map[string]string, error) {
	m, _ := o["headers"].(map[string]any)
	out := make(map[string]string, len(m))
	for name, v := range m {
		s, ok := v.(string)
		if !ok {
			return nil, vm.Errorf(string(kernel.Validation), "opts.headers.%s: got %s, want string", name, vm.TypeName(v))
		}
		if strings.ContainsFunc(name+s, unicode.IsControl) {
			return nil, vm.Errorf(string(kernel.Validation), "opts.headers.%q holds a control character", name)
		}
		if redact.CredentialName(name) {
			learn(name, s)
			if _, bare, ok := strings.Cut(s, " "); ok {
				learn(name, bare)
			}
		}
		out[name] = s
	}
	return out, nil
}
