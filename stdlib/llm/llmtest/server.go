package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// MaxHang bounds a hang whose client does not go away.
const MaxHang = 60 * time.Second

// Model is the only model that the server lists.
const Model = "scripted-1"

// Request is one request as it came. Body is nil when it was no JSON object.
type Request struct {
	Method, Path string
	Header       http.Header
	Raw          []byte
	Body         map[string]any
	Time         time.Time
}

// Server is a running model server. It is safe for concurrent use.
type Server struct {
	url    string
	server *http.Server
	done   context.Context // ends with the server
	stop   context.CancelFunc
	served chan struct{}

	mu       sync.Mutex
	replies  []Reply
	given    int // how often replies[0] was given
	requests []Request
	count    int

	connections atomic.Int64
}

// New starts a server that the test's end closes.
func New(t testing.TB, replies ...Reply) *Server {
	t.Helper()
	s, err := Start(replies...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server on a free port of 127.0.0.1; Close it.
func Start(replies ...Reply) (*Server, error) { return Listen("127.0.0.1:0", replies...) }

// Listen is Start on an address of the caller's.
func Listen(addr string, replies ...Reply) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + l.Addr().String() + "/v1", replies: slices.Clone(replies), served: make(chan struct{})}
	s.done, s.stop = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, map[string]any{"status": "ok"}) })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": Model, "object": "model", "created": created, "owned_by": "llmtest"}}})
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.chat(w, r, false) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.chat(w, r, true) })
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: MaxHang, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(l)
	}()
	return s, nil
}

// URL is the base URL for a client: it ends in /v1.
func (s *Server) URL() string { return s.url }

// Requests gives the requests for a completion so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Connections counts the connections that were opened so far.
func (s *Server) Connections() int { return int(s.connections.Load()) }

// Left counts the replies that nothing has asked for; one that repeats for ever does
// not count.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i, r := range s.replies {
		if r.Repeat < 0 {
			continue
		}
		n += max(1, r.Repeat)
		if i == 0 {
			n -= s.given
		}
	}
	return n
}

// Add appends replies.
func (s *Server) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Close ends the server and every hang. It may be called more than once.
func (s *Server) Close() {
	s.stop()
	_ = s.server.Close()
	<-s.served
}

// take records a request and gives its reply.
func (s *Server) take(r Request) (Reply, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.count++
	if len(s.replies) == 0 {
		return Error(http.StatusBadRequest, "invalid_request_error", "script_ended", "llmtest: no reply is left for this request"), s.count
	}
	reply := s.replies[0]
	s.given++
	if reply.Repeat >= 0 && s.given >= max(1, reply.Repeat) {
		s.replies, s.given = s.replies[1:], 0
	}
	if reply.answer != nil {
		reply = reply.answer(r.Body)
	}
	return reply, s.count
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, wire messagesWire) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Raw: raw, Time: time.Now()}
	if json.Unmarshal(raw, &req.Body) != nil {
		req.Body = nil
	}
	reply, n := s.take(req)
	if req.Body == nil {
		reply = Error(http.StatusBadRequest, "invalid_request_error", "", "We could not parse the JSON body of your request.")
	}
	x := &exchange{w: w, n: n, reply: reply, request: req.Body, raw: raw, wire: wire, ctx: r.Context(), done: s.done}
	if reply.WaitMS > 0 {
		x.pause(time.Duration(reply.WaitMS) * time.Millisecond)
	}
	x.answer()
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Serve answers on addr from a script file until ctx ends: a JSON array of replies,
// or an object {"replies": […]}. ready, when set, is told the base URL once.
func Serve(ctx context.Context, addr, script string, ready func(url string)) error {
	replies, err := Load(script)
	if err != nil {
		return err
	}
	s, err := Listen(addr, replies...)
	if err != nil {
		return err
	}
	defer s.Close()
	if ready != nil {
		ready(s.URL())
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// pieces cuts text after spaces and newlines, and long words after five characters,
// as tokens fall.
func pieces(text string) []string {
	var out []string
	var b strings.Builder
	n := 0
	for _, r := range text {
		b.WriteRune(r)
		if n++; r == ' ' || r == '\n' || n == 5 {
			out = append(out, b.String())
			b.Reset()
			n = 0
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}
