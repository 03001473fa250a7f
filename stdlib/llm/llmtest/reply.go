package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Fault is a way to misbehave.
type Fault string

// The faults. Those of a stream do the nearest thing to a reply that is not one.
const (
	HangsBefore     Fault = "hang_before"      // reads the request, answers nothing
	HangsInside     Fault = "hang_inside"      // a first piece, then nothing
	OnlyComments    Fault = "comments_forever" // a first piece, then comment lines
	HalfCharacter   Fault = "half_utf8"        // text cut between the bytes of a character
	ClosesEarly     Fault = "close_early"      // a first piece, then the connection is cut
	Drops           Fault = "drop"             // reads the request, then cuts the connection
	FailsInside     Fault = "error_in_stream"  // a first piece, then an error object
	Trickles        Fault = "trickle"          // with chunks: a pause before each
	WithoutTerminal Fault = "no_done"          // all of it, but no finish reason and no [DONE]
)

// Reply is one scripted answer; the JSON names are those of a script file. The zero
// value is an answer without a word.
type Reply struct {
	Text      string            `json:"text,omitempty"`
	Reasoning string            `json:"reasoning,omitempty"` // goes out as reasoning_content
	Refusal   string            `json:"refusal,omitempty"`
	Calls     []Call            `json:"calls,omitempty"`
	Finish    string            `json:"finish,omitempty"` // default: stop, or tool_calls
	Usage     *Usage            `json:"usage,omitempty"`
	NoUsage   bool              `json:"no_usage,omitempty"`
	Status    int               `json:"status,omitempty"` // not 200: Body is sent as it is
	Header    map[string]string `json:"header,omitempty"`
	Body      string            `json:"body,omitempty"`
	Chunks    []string          `json:"chunks,omitempty"` // the stream's bytes, one write each
	Fault     Fault             `json:"fault,omitempty"`
	WaitMS    int64             `json:"wait_ms,omitempty"` // before the answer, for tests of concurrency
	Repeat    int               `json:"repeat,omitempty"`  // how many requests it answers; 0 is 1, -1 all that follow

	answer func(request map[string]any) Reply
}

// Call is one tool call. ID "" becomes call_1, call_2, …; Args is the JSON text.
type Call struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Usage replaces the numbers that are otherwise made from lengths.
type Usage struct {
	Prompt     int `json:"prompt"`
	Completion int `json:"completion"`
	Cached     int `json:"cached"`    // part of Prompt
	Reasoning  int `json:"reasoning"` // part of Completion
}

// Text answers with text.
func Text(text string) Reply { return Reply{Text: text} }

// Calls answers with tool calls.
func Calls(calls ...Call) Reply { return Reply{Calls: calls} }

// Reasoning answers with a thought in a field of its own, then text.
func Reasoning(thought, text string) Reply { return Reply{Reasoning: thought, Text: text} }

// Think answers with a thought in <think> tags inside the text.
func Think(thought, text string) Reply {
	return Reply{Text: "<think>\n" + thought + "\n</think>\n\n" + text}
}

// Refusal answers with a refusal.
func Refusal(text string) Reply { return Reply{Refusal: text} }

// Finish answers with the text that came before the finish reason ("length",
// "content_filter").
func Finish(reason, text string) Reply { return Reply{Finish: reason, Text: text} }

// FinishWithoutText answers with a finish reason alone.
func FinishWithoutText() Reply { return Reply{Finish: "stop"} }

// Status answers with a status, headers and a body that is sent as it is.
func Status(status int, header map[string]string, body string) Reply {
	return Reply{Status: status, Header: header, Body: body}
}

// Error answers with a status and OpenAI's error object.
func Error(status int, typ, code, message string) Reply {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": typ, "param": nil, "code": code}})
	return Status(status, map[string]string{"Content-Type": "application/json"}, string(body))
}

// RateLimited answers 429 with a retry-after in seconds, "" for none.
func RateLimited(after string) Reply {
	r := Error(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached for requests")
	if after != "" {
		r.Header["Retry-After"] = after
	}
	return r
}

// QuotaExceeded answers the 429 of an account that is used up.
func QuotaExceeded() Reply {
	return Error(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.")
}

// HTML answers with a status and a page, as proxies do.
func HTML(status int) Reply {
	return Status(status, map[string]string{"Content-Type": "text/html"},
		fmt.Sprintf("<html><head><title>%d %s</title></head><body><hr>nginx</body></html>\n", status, http.StatusText(status)))
}

// Hang never answers.
func Hang() Reply { return Reply{Fault: HangsBefore} }

// HangInside sends a first piece and then nothing.
func HangInside(text string) Reply { return Reply{Text: text, Fault: HangsInside} }

// CommentsForever sends a first piece and then only comment lines.
func CommentsForever(text string) Reply { return Reply{Text: text, Fault: OnlyComments} }

// HalfUTF8 cuts its text between the bytes of a character.
func HalfUTF8(text string) Reply { return Reply{Text: text, Fault: HalfCharacter} }

// CloseEarly cuts the connection after a first piece.
func CloseEarly(text string) Reply { return Reply{Text: text, Fault: ClosesEarly} }

// Drop cuts the connection when the request was read.
func Drop() Reply { return Reply{Fault: Drops} }

// ErrorInStream sends a first piece, then an error object.
func ErrorInStream(text string) Reply { return Reply{Text: text, Fault: FailsInside} }

// NoDone sends everything but finish reason, usage and [DONE].
func NoDone(text string) Reply { return Reply{Text: text, Fault: WithoutTerminal} }

// Raw answers 200 with a stream of these bytes, each of them one write.
func Raw(chunks ...string) Reply { return Reply{Chunks: chunks} }

// Func answers each request from here on with what f makes of its body. It is
// called by one request at a time.
func Func(f func(request map[string]any) Reply) Reply { return Reply{answer: f, Repeat: -1} }

// WithUsage gives the reply these numbers.
func (r Reply) WithUsage(u Usage) Reply { r.Usage = &u; return r }

// WithoutUsage leaves the numbers out, as some servers do.
func (r Reply) WithoutUsage() Reply { r.NoUsage = true; return r }

// WithCalls adds tool calls, after the text.
func (r Reply) WithCalls(calls ...Call) Reply { r.Calls = calls; return r }

// WithFinish replaces the finish reason.
func (r Reply) WithFinish(reason string) Reply { r.Finish = reason; return r }

// WithHeader adds a header.
func (r Reply) WithHeader(name, value string) Reply {
	h := maps.Clone(r.Header)
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	r.Header = h
	return r
}

// After waits before it answers.
func (r Reply) After(d time.Duration) Reply { r.WaitMS = d.Milliseconds(); return r }

// Times answers n requests; -1 all that follow.
func (r Reply) Times(n int) Reply { r.Repeat = n; return r }
