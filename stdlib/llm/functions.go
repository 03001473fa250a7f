package llm

import (
	"context"
	"slices"
	"strings"

	"ashlar/kernel"
	"ashlar/stdlib/llm/textcall"
	"ashlar/vm"
)

func usageFunction() vm.Function {
	return vm.Function{
		Name: "usage",
		Doc: "A provider's usage block with fields that do not overlap: {input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens, thinking_tokens, cost?, estimated?}, " +
			"cost in micro-USD. What is missing is estimated from sent and said.",
		Params: []vm.Param{
			{Name: "block", Type: vm.Map},
			{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
				{Name: "wire", Type: vm.String, Optional: true, Doc: "openai (default) or anthropic"},
				{Name: "sent", Type: vm.Integer, Optional: true, Doc: "bytes of the request"},
				{Name: "said", Type: vm.Integer, Optional: true, Doc: "bytes of the reply"},
			}},
		},
		Results: []vm.Param{{Name: "usage", Type: vm.Map}},
		Effect:  vm.Pure,
		Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
			o := c.Map(1)
			u := usageOf(wire(o.Str("wire", "openai")), c.Map(0))
			fields := u.completed(int(o.Int("sent", 0)), int(o.Int("said", 0))).fields()
			if !u.Whole {
				fields["estimated"] = true
			}
			return []vm.Value{fields}, nil
		},
	}
}

// about declares the functions that ask a server about itself.
func (s *Sender) about(learn func(name, value string)) []vm.Function {
	ask := vm.Param{Name: "ask", Type: vm.Options, Optional: true, Fields: askFields}
	fn := func(name, doc string, result vm.Param, params []vm.Param, impl func(ctx context.Context, c *vm.Call) (vm.Value, error)) vm.Function {
		return vm.Function{
			Name: name, Doc: doc, Params: params, Results: []vm.Param{result},
			Effect: vm.Read, Record: vm.RecordResult, Capability: "net.http", Waits: true, Again: learning(len(params)-1, learn),
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
				v, err := impl(ctx, c)
				return []vm.Value{v}, err
			},
		}
	}
	return []vm.Function{
		fn("window", "What a model takes and gives at most, in tokens: {context_window?, max_output?, discovered}, from config.toml, else asked of its server once in a run.",
			vm.Param{Name: "window", Type: vm.Map}, []vm.Param{ask},
			func(ctx context.Context, c *vm.Call) (vm.Value, error) {
				w, asked, err := s.Window(ctx, askOf(c.Map(0), learn))
				m := map[string]any{"discovered": asked}
				if w.Context > 0 {
					m["context_window"] = w.Context
				}
				if w.MaxOutput > 0 {
					m["max_output"] = w.MaxOutput
				}
				return m, err
			}),
		fn("count", "How many tokens a request's body is by the server's own tokenizer, nil where it has none to ask. The last 32 answers are kept.",
			vm.Param{Name: "tokens", Type: vm.Integer, Optional: true}, []vm.Param{{Name: "body", Type: vm.Map}, ask},
			func(ctx context.Context, c *vm.Call) (vm.Value, error) {
				body := c.Map(0)
				unpack(body)
				n, ok, err := s.Count(ctx, askOf(c.Map(1), learn), body)
				if err != nil || !ok {
					return nil, err
				}
				return n, nil
			}),
		fn("probe", "Whether a server is there: {alive, kind, status?, message?}, kind ok, unavailable, down, unreachable or unknown. Waits 15 seconds at most.",
			vm.Param{Name: "probe", Type: vm.Map}, []vm.Param{ask},
			func(ctx context.Context, c *vm.Call) (vm.Value, error) {
				p, err := s.Probe(ctx, askOf(c.Map(0), learn))
				m := map[string]any{"alive": p.Alive, "kind": p.Kind}
				if p.Status > 0 {
					m["status"] = int64(p.Status)
				}
				if p.Message != "" {
					m["message"] = p.Message
				}
				return m, err
			}),
	}
}

func textCallsFunction() vm.Function {
	return vm.Function{
		Name: "text_calls",
		Doc: "Finds the tool calls that a small model wrote into its text: {text, calls, cut}. calls has the form of tool_calls, text is what is left. " +
			"What is not a whole call of one of the tools stays text; cut says that the text ends inside a call.",
		Params: []vm.Param{
			{Name: "text", Type: vm.String},
			{Name: "opts", Type: vm.Options, Fields: []vm.Param{
				{Name: "form", Type: vm.String, Optional: true, Doc: strings.Join(textcall.Forms(), ", ") + "; default auto"},
				{Name: "tools", Type: vm.List, Optional: true, Doc: "{name, input_schema} of each"},
			}},
		},
		Results: []vm.Param{{Name: "found", Type: vm.Map}},
		Effect:  vm.Pure,
		Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
			o := c.Map(1)
			form := o.Str("form", "auto")
			if !slices.Contains(textcall.Forms(), form) {
				return nil, vm.Errorf(string(kernel.Validation), "opts.form is %q; it is one of %s", form, strings.Join(textcall.Forms(), ", "))
			}
			list, _ := o["tools"].([]any)
			r := textcall.Parse(c.Str(0), form, declared(list))
			calls := make([]any, len(r.Calls))
			for i, call := range r.Calls {
				calls[i] = map[string]any{"type": "function", "function": map[string]any{"name": call.Name, "arguments": call.Args}}
			}
			return []vm.Value{map[string]any{"text": r.Text, "calls": calls, "cut": r.Cut}}, nil
		},
	}
}

// declared reads tools as far as their calls in text need them: names, and the types of
// the parameters.
func declared(list []any) []textcall.Tool {
	var tools []textcall.Tool
	for _, v := range list {
		m := object(v)
		t := textcall.Tool{Types: map[string]string{}}
		t.Name, _ = m["name"].(string)
		for key, schema := range object(object(m["input_schema"])["properties"]) {
			t.Types[key], _ = object(schema)["type"].(string)
		}
		if t.Name != "" {
			tools = append(tools, t)
		}
	}
	return tools
}
