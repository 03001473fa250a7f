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
// unless it speaks of quota, 529, every 5xx. told: the answer says
// when to ask again. "" means no.
func retryKind(status int, body any, told bool) string {
	switch {
	case status == http.StatusTooManyRequests:
		if quota(body, told) {
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
// whatever the status. Its code and type decide. Text that speaks of quota counts
// only where no wait was told: some providers call a rate a quota.
func quota(body any, told bool) bool {
	m, _ := body.(map[string]any)
	names, text := []any{m["code"], m["type"]}, m["message"]
	switch e := m["error"].(type) {
	case map[string]any:
		names, text = []any{e["code"], e["type"]}, e["message"]
	case string:
		text = e
	}
	rate := false
	for _, v := range names {
		s, _ := v.(string)
		s = strings.ToLower(s)
		if strings.Contains(s, "quota") || strings.Contains(s, "billing_hard_limit") {
			return true
		}
		rate = rate || strings.HasPrefix(s, "rate_limit")
	}
	s, _ := text.(string)
	s = strings.ToLower(s)
	return !told && !rate && (strings.Contains(s, "quota") || strings.Contains(s, "billing_hard_limit"))
}

// retryAfter reads how long a provider asks to wait: the header in both of its forms,
// else the RetryInfo among an error's details. told is false where it says nothing.
func retryAfter(h http.Header, body any, now time.Time) (wait time.Duration, told bool) {
	v := h.Get("Retry-After")
	if secs, err := strconv.ParseFloat(v, 64); err == nil && secs >= 0 {
		return time.Duration(min(secs, 1e6) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now)), true
	}
	m, _ := body.(map[string]any)
	e, _ := m["error"].(map[string]any)
	details, _ := e["details"].([]any)
	for _, v := range details {
		d, _ := v.(map[string]any)
		typ, _ := d["@type"].(string)
		delay, _ := d["retryDelay"].(string)
		if !strings.HasSuffix(typ, "google.rpc.RetryInfo") {
			continue
		}
		if wait, err := time.ParseDuration(delay); err == nil && wait >= 0 {
			return wait, true
		}
	}
	return 0, false
}
