package trace

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefix is what every line begins with, as the value of prefix=.
const Prefix = "ashlar.obs"

// Components of a line.
const (
	HTTP = "http"
	Tool = "tool"
	MCP  = "mcp"
	Mesh = "mesh"
)

// Hidden stands for the value of a key that is named like a credential.
const Hidden = "[REDACTED]"

// Field is one further k=v of a line.
type Field struct{ Key, Value string }

// Line formats one event, in one order, on one line:
//
//	prefix=ashlar.obs event=E component=C trace_id=… run_id=… agent_id=… agent_name=… k=v…
//
// Whoever splits it at spaces outside JSON strings gets its fields back.
func (id Identity) Line(event, component string, more ...Field) string {
	var b strings.Builder
	fields := []Field{
		{"event", event}, {"component", component},
		{"trace_id", id.TraceID}, {"run_id", id.RunID}, {"agent_id", id.AgentID}, {"agent_name", id.AgentName},
	}
	b.WriteString("prefix=" + Prefix)
	for _, f := range fields {
		b.WriteString(" " + f.Key + "=" + escape(f.Value))
	}
	for _, f := range more {
		value := f.Value
		switch {
		case secret(f.Key):
			value = Hidden
		case f.Key == "url":
			value = CleanURL(value)
		}
		b.WriteString(" " + f.Key + "=" + escape(value))
	}
	return b.String()
}

// escape writes a value: as it is, or as a JSON string where it is empty, holds
// white space or =, or could be taken for one that was escaped.
func escape(s string) string {
	plain := s != "" && s[0] != '"' && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '=' || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if plain {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""` // a string always has a JSON form
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// secret reports whether a key is named like a credential, whatever its case and
// whether its words are joined by _ or -.
func secret(key string) bool {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	for _, word := range []string{"authorization", "cookie", "token", "secret", "password", "passwd", "api_key", "apikey",
		"access_key", "private_key"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// keptOfBadURL is how much of a URL that cannot be read is shown, in characters.
const keptOfBadURL = 16

// CleanURL drops what of a URL may hold a secret: user information, query and fragment.
// Of one that cannot be read, the beginning of what is then left is shown.
func CleanURL(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Opaque == "" {
		u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
		return u.String()
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	}
	// The last @, wherever it is: a password may hold any character, unescaped.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if cut := strings.IndexAny(rest, "?#"); cut >= 0 {
		rest = rest[:cut]
	}
	if found {
		rest = scheme + "://" + rest
	}
	r := []rune(rest)
	return string(r[:min(len(r), keptOfBadURL)]) + "..."
}
