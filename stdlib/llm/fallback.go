package llm

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ashlar/kernel/logjson"
)

// Fallback is a request that is sent again without what the server refused: the fields
// of llm_fallback.
type Fallback struct {
	Without string // tools, stream or stream_options
	Status  int
}

// fields are what goes when something is gone without.
func (f Fallback) fields() []string {
	switch f.Without {
	case "tools":
		return []string{"tools", "tool_choice", "parallel_tool_calls"}
	case "stream":
		return []string{"stream", "stream_options"}
	}
	return []string{f.Without}
}

// refusedBy reads from an error whether a server does not know tools or streams at all,
// nil otherwise. A tool that it does not like is another thing.
func refusedBy(reply Reply, body map[string]any) *Fallback {
	switch reply.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return nil
	}
	text, param := complaint(object(reply.Body))
	text = strings.ToLower(text)
	f := &Fallback{Status: reply.Status}
	switch streams, _ := body["stream"].(bool); {
	case body["stream_options"] != nil && (param == "stream_options" || strings.Contains(text, "stream_options")):
		f.Without = "stream_options"
	case streams && (param == "stream" || noStreams(text)):
		f.Without = "stream"
	case body["tools"] != nil && noTools(text):
		f.Without = "tools"
	default:
		return nil
	}
	return f
}

// noTools knows how servers say that a model calls no tools.
func noTools(text string) bool {
	return regexp.MustCompile(`\b(does not|doesn't|do not|cannot|can't) support (native )?(tools?|functions?)\b` +
		`|\b(tools?|tool (use|calling|calls)|functions?|function (calling|calls)) (is|are) (not (supported|enabled|available)|unsupported)\b` +
		`|endpoints? found that supports? tool use|tools param requires|tool choice requires --`).MatchString(text)
}

// noStreams knows how servers say that a model does not stream.
func noStreams(text string) bool {
	return regexp.MustCompile(`\b(does not|doesn't|do not|cannot|can't) (support )?stream` +
		`|\bstream(ing|s|ed)?( responses?| mode| output)? (is|are) (not (supported|enabled|available|allowed)|unsupported)\b`).MatchString(text)
}

// complaint gives the text of an error and the field that it is about, in the forms that
// servers have for it.
func complaint(body map[string]any) (text, param string) {
	switch e := body["error"].(type) {
	case string:
		return e, ""
	case map[string]any:
		text, _ = e["message"].(string)
		param, _ = e["param"].(string)
		return text, param
	}
	if text, _ = body["message"].(string); text != "" {
		return text, ""
	}
	switch d := body["detail"].(type) {
	case string:
		return d, ""
	case []any: // FastAPI: a list of {loc, msg}
		for _, v := range d {
			loc, _ := object(v)["loc"].([]any)
			if len(loc) > 1 {
				text, _ = object(v)["msg"].(string)
				param, _ = loc[1].(string)
				return text, param
			}
		}
	}
	return "", ""
}

// refusals remembers what places refused, so that a run asks each of them once. The zero
// value is ready.
type refusals struct {
	mu sync.Mutex
	by map[string][]Fallback
}

func place(t Target, body map[string]any) string {
	model, _ := body["model"].(string)
	return t.Provider + "\n" + t.BaseURL + "\n" + model
}

func (r *refusals) add(at string, list ...Fallback) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string][]Fallback{}
	}
	for _, f := range list {
		if !slices.ContainsFunc(r.by[at], func(old Fallback) bool { return old.Without == f.Without }) {
			r.by[at] = append(r.by[at], f)
		}
	}
}

func (r *refusals) of(at string) []Fallback {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.by[at])
}

// spare takes out of a request what its place refused before, and gives the names.
func (s *Sender) spare(t Target, body map[string]any) (gone []any) {
	for _, f := range s.refused.of(place(t, body)) {
		if body[f.Without] == nil {
			continue
		}
		for _, key := range f.fields() {
			delete(body, key)
		}
		gone = append(gone, f.Without)
	}
	return gone
}

// fallback makes the request that goes out instead of one that was refused, and says
// what it is without; nil where there is none. Its record is committed first. What is gone
// cannot be refused again, so there is an end.
func (s *Sender) fallback(ctx context.Context, c Call, reply Reply) (body []byte, f *Fallback, err error) {
	if f = refusedBy(reply, c.Body); f == nil {
		return nil, nil, nil
	}
	if c.OnFallback != nil {
		if err := c.OnFallback(ctx, *f); err != nil {
			return nil, nil, err
		}
	}
	for _, key := range f.fields() {
		delete(c.Body, key)
	}
	body, err = logjson.Marshal(c.Body)
	return body, f, err
}
