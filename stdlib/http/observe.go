package http

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"ashlar/kernel"
	"ashlar/kernel/trace"
	"ashlar/vm"
)

// tell says that a request leaves; what it gives says what came of it, when the head
// of a reply is there or nothing came. Neither says more of the request than its
// method and its URL, without what may be a secret there.
func (c Client) tell(req *http.Request) func(status int, err error) {
	if c.Observe == nil || c.Now == nil {
		return func(int, error) {}
	}
	about := []trace.Field{{Key: "method", Value: req.Method}, {Key: "url", Value: req.URL.String()}}
	start := c.Now()
	c.Observe("http_request", about...)
	return func(status int, err error) {
		outcome := trace.Field{Key: "status", Value: strconv.Itoa(status)}
		if err != nil {
			outcome = trace.Field{Key: "error", Value: kindOf(err)}
		}
		c.Observe("http_response", append(about, outcome,
			trace.Field{Key: "duration_ms", Value: strconv.FormatInt(c.Now().Sub(start).Milliseconds(), 10)})...)
	}
}

// kindOf is the kind of a request's failure, be it the kernel's or a syscall's own.
func kindOf(err error) string {
	var own *vm.Error
	switch {
	case errors.As(err, &own):
		return own.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return string(kernel.Cancelled)
	}
	return string(kernel.KindOf(err))
}
