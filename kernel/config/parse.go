package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"ashlar/kernel"
)

const op = "config"

// maxBytes is the largest config.toml that is read.
const maxBytes = 1 << 20

// document is the form of a config.toml.
type document struct {
	Provider map[string]providerTable `toml:"provider"`
	Model    map[string]modelTable    `toml:"model"`
	Run      runTable                 `toml:"run"`
	Limits   map[string]any           `toml:"limits"`
}

type providerTable struct {
	Kind      string `toml:"kind"`
	BaseURL   string `toml:"base_url"`
	APIKeyEnv string `toml:"api_key_env"`
}

type modelTable struct {
	ContextWindow *int64     `toml:"context_window"`
	MaxOutput     *int64     `toml:"max_output"`
	Price         priceTable `toml:"price"`
}

type priceTable struct {
	Input      *float64 `toml:"input"`
	Output     *float64 `toml:"output"`
	CacheRead  *float64 `toml:"cache_read"`
	CacheWrite *float64 `toml:"cache_write"`
}

type runTable struct {
	Beats     *int64   `toml:"beats"`
	Tokens    *int64   `toml:"tokens"`
	ToolCalls *int64   `toml:"tool_calls"`
	Cost      *float64 `toml:"cost"`
	Deadline  any      `toml:"deadline"`
	Profile   string   `toml:"profile"`
	Model     string   `toml:"model"`
}

// source is one file that was read.
type source struct {
	File
	text string
	doc  document
}

// read gives nil for a file that does not exist.
func read(f File) (*source, error) {
	st, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !st.Mode().IsRegular() {
		// A repository may hold a link to a device, which has no end.
		return nil, kernel.Errorf(op, kernel.Validation, "%s is no regular file", f.Path)
	}
	if err == nil && st.Size() > maxBytes {
		return nil, kernel.Errorf(op, kernel.Limit, "%s is larger than %d bytes", f.Path, maxBytes)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(f.Path)
	}
	if err != nil {
		return nil, kernel.Errorf(op, kernel.Permission, "%s cannot be read: %w", f.Path, errors.Unwrap(err))
	}
	if !utf8.Valid(b) {
		return nil, kernel.Errorf(op, kernel.Validation, "%s is not UTF-8 text", f.Path)
	}
	s := &source{File: f, text: strings.TrimPrefix(string(b), "\ufeff")}
	d := toml.NewDecoder(strings.NewReader(s.text)).DisallowUnknownFields()
	if err := d.Decode(&s.doc); err != nil {
		return nil, s.malformed(err)
	}
	return s, nil
}

// malformed names the line, and of what stands there only the key.
func (s *source) malformed(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		e := unknown.Errors[0]
		line, _ := e.Position()
		return kernel.Errorf(op, kernel.Validation, "%s:%d: unknown key %s", s.Path, line, strings.Join(e.Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, _ := bad.Position()
		if key := strings.Join(bad.Key(), "."); key != "" {
			return kernel.Errorf(op, kernel.Validation, "%s:%d: %s: %s", s.Path, line, key, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return kernel.Errorf(op, kernel.Validation, "%s:%d: %s", s.Path, line, strings.TrimPrefix(bad.Error(), "toml: "))
	}
	return kernel.Errorf(op, kernel.Validation, "%s: %v", s.Path, err)
}

// at gives FILE:LINE of a key: the line that assigns its last part below the header of
// the table that holds it, or the one that has it dotted or inline.
func (s *source) at(table, key string) string {
	lines := strings.Split(s.text, "\n")
	assigns := regexp.MustCompile(`(^|[\s.{,"'])["']?` + regexp.QuoteMeta(key) + `["']?\s*=`)
	inside, fallback := table == "", 0
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			inside = header(trimmed) == table || strings.HasPrefix(table, header(trimmed)+".") || strings.HasPrefix(header(trimmed), table+".")
		}
		if !assigns.MatchString(line) {
			continue
		}
		if inside {
			return fmt.Sprintf("%s:%d", s.Path, i+1)
		}
		if fallback == 0 {
			fallback = i + 1
		}
	}
	if fallback == 0 {
		return s.Path
	}
	return fmt.Sprintf("%s:%d", s.Path, fallback)
}

// header gives a table's name without brackets, quotes and spaces.
func header(line string) string {
	line, _, _ = strings.Cut(strings.Trim(line, "[ "), "]")
	return strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(line)
}

func (s *source) refuse(table, key, format string, args ...any) error {
	name := key
	if table != "" {
		name = table + "." + key
	}
	return kernel.Errorf(op, kernel.Validation, "%s: %s %s", s.at(table, key), name, fmt.Sprintf(format, args...))
}

// count reads a bound: a whole number of at least 1.
func (s *source) count(table, key string, v *int64) (int64, error) {
	if v == nil {
		return 0, nil
	}
	if *v < 1 {
		return 0, s.refuse(table, key, "is %d; it must be at least 1", *v)
	}
	return *v, nil
}

// money reads an amount of USD.
func (s *source) money(table, key string, v *float64) (float64, error) {
	if v == nil {
		return 0, nil
	}
	if !(*v >= 0) || math.IsInf(*v, 0) || *v > maxUSD {
		return 0, s.refuse(table, key, "is %v; it is an amount of USD", *v)
	}
	return *v, nil
}

// maxUSD is the largest amount that a file may name.
const maxUSD = 1e9

// duration reads "10m" or a number of seconds.
func (s *source) duration(table, key string, v any) (time.Duration, error) {
	var d time.Duration
	switch x := v.(type) {
	case nil:
		return 0, nil
	case string:
		var err error
		if d, err = time.ParseDuration(x); err != nil {
			return 0, s.refuse(table, key, "is no duration: write \"90s\" or \"1h30m\"")
		}
	case int64:
		if x > math.MaxInt64/int64(time.Second) {
			return 0, s.refuse(table, key, "is longer than any run")
		}
		d = time.Duration(x) * time.Second
	default:
		return 0, s.refuse(table, key, "is no duration: write \"90s\" or \"1h30m\"")
	}
	if d <= 0 {
		return 0, s.refuse(table, key, "must be more than 0")
	}
	return d, nil
}
