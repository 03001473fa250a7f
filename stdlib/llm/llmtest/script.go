package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Load reads a script file. An unknown field is an error, so that a typo in a test
// is not silence.
func Load(path string) ([]Reply, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(b)
}

// Parse reads a script.
func Parse(b []byte) ([]Reply, error) {
	decode := func(into any) error {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			return fmt.Errorf("llmtest: script: %w", err)
		}
		return nil
	}
	if trimmed := bytes.TrimSpace(b); len(trimmed) > 0 && trimmed[0] == '[' {
		var list []Reply
		err := decode(&list)
		return list, err
	}
	var script struct {
		Replies []Reply `json:"replies"`
	}
	err := decode(&script)
	return script.Replies, err
}
