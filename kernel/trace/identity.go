package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
)

// Identity correlates what one run does with what others did for the same cause.
type Identity struct {
	TraceID   string // of the whole trace; a caller's, or made by the run
	RunID     string
	AgentID   string
	AgentName string // "" where nobody named the agent
}

// EnvelopeKey is where an envelope lies in a payload.
const EnvelopeKey = "__ashlar_obs"

// Envelope gives a payload with the identity in it, of which only what is set. A
// payload that has an envelope keeps its own; nil becomes an object where there is
// something to say; lists and scalars cannot carry one and stay as they are. The
// payload itself is not changed.
func (id Identity) Envelope(payload any) any {
	said := map[string]any{}
	for name, value := range map[string]string{
		"trace_id": id.TraceID, "run_id": id.RunID, "agent_id": id.AgentID, "agent_name": id.AgentName,
	} {
		if value != "" {
			said[name] = value
		}
	}
	object, ok := payload.(map[string]any)
	if _, has := object[EnvelopeKey]; len(said) == 0 || has || payload != nil && !ok {
		return payload
	}
	with := maps.Clone(object)
	if with == nil {
		with = map[string]any{}
	}
	with[EnvelopeKey] = said
	return with
}

// W3C gives the trace id in the form that traceparent and OpenTelemetry have: 16 bytes.
// A TraceID of 32 hexadecimal digits is that id; of any other the same id is derived
// wherever it is used.
func (id Identity) W3C() (out [16]byte) {
	if parsed, ok := HexID(id.TraceID); ok {
		return parsed
	}
	sum := sha256.Sum256([]byte(id.TraceID))
	copy(out[:], sum[:])
	return out
}

// HexID reads a trace id of 32 hexadecimal digits; ok is false for anything else, and
// for zero, which is none.
func HexID(s string) (id [16]byte, ok bool) {
	if len(s) != 32 {
		return id, false
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return id, false
	}
	copy(id[:], b)
	return id, id != [16]byte{}
}

// Parent is the span that a traceparent names.
type Parent struct {
	TraceID [16]byte
	SpanID  [8]byte
	Sampled bool
}

// ParseParent reads a W3C traceparent, "00-<32 hex>-<16 hex>-<2 hex>", of this version
// or a later one. ok is false for what is none.
func ParseParent(s string) (p Parent, ok bool) {
	parts := strings.Split(strings.TrimSpace(s), "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[2]) != 16 || len(parts[3]) != 2 || parts[0] == "00" && len(parts) != 4 {
		return p, false
	}
	version, err1 := hex.DecodeString(parts[0])
	span, err2 := hex.DecodeString(parts[2])
	flags, err3 := hex.DecodeString(parts[3])
	if err1 != nil || err2 != nil || err3 != nil || version[0] == 0xff || strings.ToLower(s) != s {
		return p, false
	}
	if p.TraceID, ok = HexID(parts[1]); !ok {
		return p, false
	}
	copy(p.SpanID[:], span)
	p.Sampled = flags[0]&1 == 1
	return p, p.SpanID != [8]byte{}
}
