package tool

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"ashlar/kernel/logjson"
)

// maxProblems bounds what one failed validation tells the model.
const maxProblems = 5

// schemas compiles input schemas once. A schema that compiles under no draft
// accepts any object, and that is said once.
type schemas struct {
	mu       sync.Mutex
	compiled map[[32]byte]*jsonschema.Schema
}

// check holds arguments to a contract's schema; "" means that they fit.
func (s *schemas) check(c Contract, args map[string]any, warn func(string)) string {
	if len(c.Input) == 0 {
		return ""
	}
	schema := s.compile(c, warn)
	if schema == nil {
		return ""
	}
	body, err := logjson.Marshal(args)
	if err != nil {
		return err.Error()
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	return problems(schema.Validate(value))
}

func (s *schemas) compile(c Contract, warn func(string)) *jsonschema.Schema {
	body, err := logjson.Marshal(c.Input)
	if err != nil {
		warn(fmt.Sprintf("the input schema of tool '%s' is no JSON (%v): any object is accepted", c.Name, err))
		return nil
	}
	key := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema, ok := s.compiled[key]; ok {
		return schema
	}
	var schema *jsonschema.Schema
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		if schema, err = compileAs(draft, body); err == nil {
			break
		}
	}
	if err != nil {
		schema = nil
		warn(fmt.Sprintf("the input schema of tool '%s' does not compile: any object is accepted", c.Name))
	}
	if s.compiled == nil {
		s.compiled = map[[32]byte]*jsonschema.Schema{}
	}
	s.compiled[key] = schema
	return schema
}

func compileAs(draft *jsonschema.Draft, body []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	const url = "tool:input"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(refusing{})
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

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
