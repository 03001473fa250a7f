package tool

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// maxProblems bounds what one failed validation tells the model.
const maxProblems = 5

// schemas compiles input schemas once. A schema that compiles under no draft
// accepts any object, and that is said once.
type schemas struct {
	mu       sync.Mutex
	compiled map[[32]byte]*jsonschema.Schema // nil: any object is accepted
	unsaid   map[string]bool                 // the tools whose schema is no JSON, warned of
}

// check holds arguments to a contract's schema; "" means that they fit.
func (s *schemas) check(c Contract, args map[string]any, warn func(string)) string {
	body, err := logjson.Marshal(args)
	if err != nil {
		return kernel.Message(err) // also without a schema: what cannot be said cannot be recorded
	}
	if len(c.Input) == 0 {
		return ""
	}
	schema := s.compile(c, warn)
	if schema == nil {
		return ""
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	err = validate(schema, value)
	if errors.Is(err, errEndless) {
		s.giveUp(c, warn)
		return ""
	}
	return problems(err)
}

// errEndless is a schema that leads to itself without looking at any value.
var errEndless = errors.New("the schema refers to itself without end")

// validate is Schema.Validate, with a fault of the schema told from one of the value.
func validate(schema *jsonschema.Schema, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errEndless
		}
	}()
	err = schema.Validate(value)
	var ve *jsonschema.ValidationError
	if errors.As(err, &ve) && endless(ve) {
		return errEndless
	}
	return err
}

func endless(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(e.Causes, endless)
}

func (s *schemas) compile(c Contract, warn func(string)) *jsonschema.Schema {
	body, err := logjson.Marshal(c.Input)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if !s.unsaid[c.Name] {
			if s.unsaid == nil {
				s.unsaid = map[string]bool{}
			}
			s.unsaid[c.Name] = true
			warn(fmt.Sprintf("the input schema of tool '%s' is no JSON (%s): any object is accepted", c.Name, kernel.Message(err)))
		}
		return nil
	}
	key := sha256.Sum256(body)
	if schema, ok := s.compiled[key]; ok {
		return schema
	}
	patterns := &patterns{}
	schema := compileAny(body, patterns)
	switch {
	case schema == nil:
		warn(unusable(c))
	case len(patterns.dropped) > 0:
		warn(fmt.Sprintf("the input schema of tool '%s' has a pattern that this engine does not know (%q): it is not checked", c.Name, patterns.dropped[0]))
	}
	s.keep(key, schema)
	return schema
}

// giveUp takes a schema out of use that compiles but cannot be applied.
func (s *schemas) giveUp(c Contract, warn func(string)) {
	body, err := logjson.Marshal(c.Input)
	if err != nil {
		return
	}
	key := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiled[key] != nil {
		s.keep(key, nil)
		warn(unusable(c))
	}
}

func (s *schemas) keep(key [32]byte, schema *jsonschema.Schema) {
	if s.compiled == nil {
		s.compiled = map[[32]byte]*jsonschema.Schema{}
	}
	s.compiled[key] = schema
}

func unusable(c Contract) string {
	return fmt.Sprintf("the input schema of tool '%s' cannot be used: any object is accepted", c.Name)
}

// compileAny tries the drafts that tool authors write in, the newest first; nil when
// none takes it.
func compileAny(body []byte, p *patterns) *jsonschema.Schema {
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		if schema, err := compileAs(draft, body, p); err == nil {
			return schema
		}
	}
	return nil
}

func compileAs(draft *jsonschema.Draft, body []byte, p *patterns) (schema *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("compiling it panicked: %v", r)
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	const url = "tool:input"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(refusing{})
	c.UseRegexpEngine(p.compile)
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// patterns compiles the patterns of a schema and passes over those that Go's engine
// does not know (look-ahead, back references): the rest of the schema still holds.
type patterns struct{ dropped []string }

func (p *patterns) compile(source string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(source)
	if err != nil {
		p.dropped = append(p.dropped, source)
		return anyText(source), nil
	}
	return re, nil
}

// anyText matches everything.
type anyText string

// MatchString implements jsonschema.Regexp.
func (anyText) MatchString(string) bool { return true }

// String implements jsonschema.Regexp.
func (a anyText) String() string { return string(a) }

// refusing is the loader of references that lead out of a schema: the library's
// own would open file URLs.
type refusing struct{}

func (refusing) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", url)
}

// problems flattens a validation error to "path: what", the leaves first in order
// of path.
func problems(err error) string {
	if err == nil {
		return ""
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err.Error()
	}
	printer := message.NewPrinter(language.English)
	var lines []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			path := "$"
			for _, part := range e.InstanceLocation {
				path += "." + part
			}
			lines = append(lines, path+": "+e.ErrorKind.LocalizedString(printer))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(ve)
	sort.Strings(lines)
	if len(lines) > maxProblems {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", len(lines)-maxProblems))
	}
	return strings.Join(lines, "; ")
}
