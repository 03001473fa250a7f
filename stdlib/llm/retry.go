package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Bounds of the one retry policy.
const (
	DefaultRetries = 2 // after the first attempt
	MaxRetries     = 10
	firstPause     = 500 * time.Millisecond
	longestPause   = 8 * time.Second
	MaxRetryAfter  = 60 * time.Second // a longer wait is the caller's affair
)

func pauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = firstPause, longestPause, 2, 0
	b.Reset()
	return b
}

// jitter spreads a pause by a quarter to either side. What it takes for chance comes
// from the request, since the pause is recorded and a replay must find it again.
func jitter(d time.Duration, chance byte) time.Duration {
	return d*3/4 + d/2*time.Duration(chance)/255
}

// retryKind says whether an answer of the provider may be asked for again: 429
// unless it speaks of quota, 529, every 5xx. "" means no.
func retryKind(status int, body any) string {
	switch {
	case status == http.StatusTooManyRequests:
		if quota(body) {
			return ""
		}
		return "rate_limited"
	case status == http.StatusServiceUnavailable, status == 529:
		return "overloaded"
	case status == http.StatusGatewayTimeout:
		return "transport"
	case status >= 500:
		return "server"
	}
	return ""
}

// quota reports whether an error body says that the account is used up: final,
// whatever the status.
func quota(body any) bool {
	m, _ := body.(map[string]any)
	texts := []any{m["error"], m["message"], m["code"]}
	if e, ok := m["error"].(map[string]any); ok {
		texts = []any{e["code"], e["type"], e["message"]}
	}
	for _, v := range texts {
		if s, ok := v.(string); ok && (strings.Contains(strings.ToLower(s), "quota") || strings.Contains(s, "billing_hard_limit")) {
			return true
		}
	}
	return false
}

// retryAfter reads the header in both of its forms; 0 when absent.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if secs, err := strconv.ParseFloat(v, 64); err == nil && secs >= 0 {
		return time.Duration(min(secs, 1e6) * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
