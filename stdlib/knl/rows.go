package knl

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session"
	"ashlar/vm"
)

// row gives an event as scripts see it.
func row(e event.Event) (map[string]any, error) {
	meta, err := logjson.Object(e.Meta)
	if err != nil {
		return nil, kernel.Errorf("", kernel.Corruption, "meta of event %d of %s does not decode: %s", e.Seq, e.Stream, kernel.Message(err))
	}
	data, err := logjson.Object(e.Data)
	if err != nil {
		return nil, kernel.Errorf("", kernel.Corruption, "data of event %d of %s does not decode: %s", e.Seq, e.Stream, kernel.Message(err))
	}
	return map[string]any{
		"kind": e.Kind, "meta": meta, "data": data, "seq": e.Seq, "epoch_ms": e.EpochMS,
		"_schema_version": int64(e.SchemaVersion),
	}, nil
}

func rows(events []event.Event) ([]any, error) {
	out := make([]any, 0, len(events))
	for _, e := range events {
		r, err := row(e)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// page gives one page of a session.
func page(events []event.Event, more bool, err error) ([]vm.Value, error) {
	if err != nil {
		return nil, err
	}
	list, err := rows(events)
	return []vm.Value{list, more}, err
}

// Record gives the line of `--as messages` for an event of a conversation; ok is
// false for one that is none.
func Record(e event.Event) (record map[string]any, ok bool, err error) {
	r, err := row(e)
	if err != nil {
		return nil, false, err
	}
	data, meta := r["data"].(map[string]any), r["meta"].(map[string]any)
	record = map[string]any{"seq": e.Seq, "epoch_ms": e.EpochMS, "kind": e.Kind}
	if beat, has := meta["beat"]; has {
		record["beat"] = beat
	}
	switch e.Kind {
	case "msg_user":
		record["role"], record["content"] = "user", data["content"]
	case "llm_response":
		record["role"], record["content"] = "assistant", data["content"]
		for _, key := range []string{"usage", "stop_reason"} {
			if v, has := data[key]; has {
				record[key] = v
			}
		}
	case "tool_call":
		record["role"] = "assistant"
		record["content"] = map[string]any{"type": "tool_use", "id": data["call_id"], "name": data["name"], "input": data["args"]}
	case "tool_result":
		record["role"] = "user"
		block := map[string]any{"type": "tool_result", "tool_use_id": data["call_id"], "content": text(data["result"])}
		if ok, _ := data["ok"].(bool); !ok {
			block["is_error"] = true
		}
		record["content"] = block
	default:
		return nil, false, nil
	}
	return record, true, nil
}

func text(v any) string {
	switch s := v.(type) {
	case string:
		return s
	case nil:
		return ""
	}
	b, err := logjson.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// export reads a whole session in one of its two forms.
func export(ctx context.Context, c *vm.Call, s *session.Session, as string) ([]vm.Value, error) {
	out := []any{}
	for from, more := int64(1), true; more; {
		var events []event.Event
		var err error
		events, more, err = sameEnd(ctx, c, func() ([]event.Event, bool, error) {
			return s.Events(ctx, from, as == "events") // a request is no message
		})
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			from = e.Seq + 1
			if as == "messages" {
				r, ok, err := Record(e)
				if err != nil {
					return nil, err
				}
				if ok {
					out = append(out, r)
				}
				continue
			}
			r, err := row(e)
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return []vm.Value{out}, nil
}
