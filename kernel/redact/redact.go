package redact

import (
	"encoding/json"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// MinSecretBytes is the length from which a value counts as a secret. Shorter
// ones ("1", "true", "none") occur everywhere by chance.
const MinSecretBytes = 6

// Redactor replaces known secrets. The zero value knows none; it is safe for
// concurrent use, and learning a secret takes effect at once.
type Redactor struct {
	mu       sync.RWMutex
	values   map[string]string // secret -> the name it is shown under
	replacer *strings.Replacer // nil while there is nothing to replace
	byFirst  map[byte][]string // the secrets by their first byte, the longest first
}

// New returns a Redactor that knows no secret yet.
func New() *Redactor { return &Redactor{} }

// Add teaches it a secret and the name that stands in its place, as in
// "[redacted:OPENAI_API_KEY]". Values shorter than MinSecretBytes are ignored.
// Besides the value itself, the forms that it has inside a JSON string are known.
func (r *Redactor) Add(name, value string) {
	if len(value) < MinSecretBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[string]string{}
	}
	mark := "[redacted:" + name + "]"
	r.values[value] = mark
	for _, form := range jsonForms(value) {
		r.values[form] = mark
	}
	r.replacer, r.byFirst = build(r.values)
}

// AddEnviron teaches it the value of every credential-named variable of an
// environment in the form of os.Environ.
func (r *Redactor) AddEnviron(environ []string) {
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && CredentialName(name) {
			r.Add(name, value)
		}
	}
}

// String replaces every known secret in s. Text that is not UTF-8 may hide a
// secret cut in half, so its invalid bytes are replaced first.
func (r *Redactor) String(s string) string {
	r.mu.RLock()
	rep := r.replacer
	r.mu.RUnlock()
	if rep == nil {
		return s
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return rep.Replace(s)
}

// Bytes is String for bytes; valid JSON stays valid JSON, since a secret is
// replaced within the string literal that holds it. The result may share b.
func (r *Redactor) Bytes(b []byte) []byte {
	r.mu.RLock()
	rep := r.replacer
	r.mu.RUnlock()
	if rep == nil {
		return b
	}
	s := string(b)
	if out := r.String(s); out != s {
		return []byte(out)
	}
	return b
}

// Empty reports whether it knows no secret.
func (r *Redactor) Empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.replacer == nil
}

// build makes a replacer that prefers the longest of several secrets that begin
// at one place: strings.Replacer takes the first pair that matches. It gives the
// secrets in that order too, by their first byte.
func build(values map[string]string) (*strings.Replacer, map[byte][]string) {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if len(keys[i]) != len(keys[j]) {
			return len(keys[i]) > len(keys[j])
		}
		return keys[i] < keys[j]
	})
	pairs := make([]string, 0, 2*len(keys))
	byFirst := map[byte][]string{}
	for _, k := range keys {
		pairs = append(pairs, k, values[k])
		byFirst[k[0]] = append(byFirst[k[0]], k)
	}
	return strings.NewReplacer(pairs...), byFirst
}

// jsonForms gives what value looks like inside a JSON string literal, as encoders
// write it with and without HTML escapes.
func jsonForms(value string) []string {
	var forms []string
	for _, html := range []bool{false, true} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(value) == nil {
			forms = append(forms, strings.TrimSuffix(b.String(), "\n")[1:b.Len()-2])
		}
	}
	return forms
}
