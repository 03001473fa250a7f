package record

import (
	"io"
	"strings"
	"testing"
)

// FuzzParse holds the reader of recordings to errors: whatever a file holds, nothing
// panics, and what was taken can be asked for.
func FuzzParse(f *testing.F) {
	const head = `{"v":1,"ashlar":"x","block":"d"}` + "\n"
	f.Add(head + `{"n":1,"request":{"provider":"p","path":"c","body":{"a":1}},"response":{"status":200,"headers":{"a":"b"},"chunks":["x",{"base64":"/w=="}]},"error":{"kind":"timeout","message":"m","sent":true}}`)
	f.Add(head + `{"request":{"body":{}},"error":"cut"}`)
	f.Add("\xff{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, queue := range p.byKey {
			for _, e := range append([]exchange(nil), queue...) {
				res, _, err := p.Answer(Exchange{Provider: e.request.provider, Path: e.request.path, Body: e.request.body})
				if err == nil {
					_, _ = io.ReadAll(res.Body)
				}
			}
		}
		if p.Left() != 0 {
			t.Errorf("%d are left", p.Left())
		}
	})
}
