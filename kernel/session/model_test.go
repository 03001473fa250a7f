package session_test

import (
	"fmt"
	"slices"
	"strings"
)

// model is what sessions, budgets, trees and runs are to be, in plain maps: it shares no
// code with the kernel. Each of its methods is one operation and gives its outcome as
// the test prints the kernel's.
type model struct {
	streams map[string]*modelStream
	runs    map[string]*modelRun
}

type modelStream struct {
	tags       []string
	left, held map[string]int64
	kinds      []string
	ended      bool
	run        string // of a session
}

type modelRun struct {
	*modelStream
	joined map[string]bool
	over   bool
	fired  map[string]bool
}

// modelHandle is one handle: Close shuts it, whoever else has the session open.
type modelHandle struct {
	id, run string
	closed  bool
}

func newModel() *model {
	return &model{streams: map[string]*modelStream{}, runs: map[string]*modelRun{}}
}

func newModelStream() *modelStream {
	return &modelStream{left: map[string]int64{}, held: map[string]int64{}}
}

func (s *modelStream) add(kinds ...string) { s.kinds = append(s.kinds, kinds...) }

func (s *modelStream) has(tag string) bool { return slices.Contains(s.tags, tag) }

func (s *modelStream) short(tag string, n int64) bool { return s.has(tag) && s.left[tag] < n }

func (s *modelStream) grant(tag string, n int64) {
	if !s.has(tag) {
		s.tags = append(s.tags, tag)
	}
	s.left[tag] += n
	s.add("budget_granted")
}

func (s *modelStream) reserve(amounts map[string]int64) {
	for _, tag := range inOrder(amounts) {
		if !s.has(tag) {
			continue
		}
		s.left[tag] -= amounts[tag]
		if tag == "tokens" || tag == "cost" {
			s.held[tag] += amounts[tag]
		}
		s.add("budget_reserved")
	}
}

func (s *modelStream) settle(tag string, reserved, used int64) {
	if !s.has(tag) {
		return
	}
	reserved = min(reserved, s.held[tag])
	s.held[tag] -= reserved
	s.left[tag] = max(0, s.left[tag]+reserved-used)
	s.add("budget_settled")
}

func (s *modelStream) spend(amounts map[string]int64) {
	for _, tag := range inOrder(amounts) {
		if s.has(tag) {
			s.left[tag] = max(0, s.left[tag]-amounts[tag])
			s.add("budget_spent")
		}
	}
}

// inOrder is the fixed order of contracts §4.
func inOrder(amounts map[string]int64) (tags []string) {
	for _, tag := range []string{"beats", "tokens", "cost", "seconds", "tool_calls"} {
		if _, ok := amounts[tag]; ok {
			tags = append(tags, tag)
		}
	}
	var others []string
	for tag := range amounts {
		if !slices.Contains(tags, tag) {
			others = append(others, tag)
		}
	}
	slices.Sort(others)
	return append(tags, others...)
}

func (m *model) begin(id string, bounds map[string]int64) {
	r := &modelRun{modelStream: newModelStream(), joined: map[string]bool{}, fired: map[string]bool{}}
	m.runs[id], m.streams["run:"+id] = r, r.modelStream
	r.add("run_queued")
	for _, tag := range inOrder(bounds) {
		r.grant(tag, bounds[tag])
	}
	r.add("run_owned")
}

// given is one grant.
type given struct {
	tag string
	n   int64
}

// open gives the outcome of opening a session; parent may be nil.
func (m *model) open(id, run string, parent *modelHandle, grants []given) string {
	if parent != nil {
		p := m.streams[parent.id]
		if m.shut(parent) || p.ended {
			return "closed"
		}
		amounts := map[string]int64{}
		grants = slices.Clone(grants)
		for i := range grants {
			if grants[i].tag == "" && len(p.tags) > 0 {
				grants[i].tag = p.tags[0]
			}
			if _, twice := amounts[grants[i].tag]; twice {
				return "validation"
			}
			amounts[grants[i].tag] = grants[i].n
		}
		for _, tag := range inOrder(amounts) {
			if p.short(tag, amounts[tag]) {
				p.add("budget_refused")
				return "refused"
			}
		}
		for _, tag := range inOrder(amounts) {
			if p.has(tag) {
				p.left[tag] -= amounts[tag]
			}
			p.add("budget_reserved")
		}
	}
	s := newModelStream()
	s.run = run
	m.streams[id] = s
	s.add("session_opened")
	for _, g := range grants {
		s.grant(g.tag, g.n)
	}
	r := m.runs[run]
	r.joined[id] = true
	r.add("run_session")
	return "ok"
}

func (m *model) shut(h *modelHandle) bool { return h.closed || m.runs[h.run].over }

func (m *model) resume(id, run string, grants []given) string {
	s := m.streams[id]
	switch {
	case s.ended:
		return "closed"
	case s.run != run && !m.runs[s.run].over:
		return "busy"
	}
	for _, g := range grants {
		s.grant(g.tag, g.n)
	}
	return "ok"
}

// change is a batch on a session.
type change struct {
	reserve, need     map[string]int64
	append, otherwise int
	settle            string // a tag; "" for none
	reserved, used    int64
	spend             map[string]int64
}

func (c change) negative() bool {
	for _, amounts := range []map[string]int64{c.reserve, c.need, c.spend} {
		for _, n := range amounts {
			if n < 0 {
				return true
			}
		}
	}
	return c.settle != "" && c.settle != "tokens" && c.settle != "cost"
}

func (m *model) commit(h *modelHandle, c change) string {
	if m.shut(h) {
		return "closed"
	}
	if c.negative() {
		return "validation"
	}
	s, r := m.streams[h.id], m.runs[h.run]
	moves := len(c.reserve)+len(c.need)+len(c.spend) > 0 || c.settle != ""
	wanted := map[string]int64{}
	for _, amounts := range []map[string]int64{c.reserve, c.need} {
		for tag, n := range amounts {
			wanted[tag] = max(wanted[tag], n)
		}
	}
	for _, tag := range inOrder(wanted) {
		own, pool := s.short(tag, wanted[tag]), r.short(tag, wanted[tag])
		if own && pool {
			pool = r.left[tag] <= s.left[tag]
		}
		switch {
		case pool:
			r.add("budget_refused")
			r.fired[tag] = true
			s.add("budget_refused")
			return fmt.Sprint("refused ", tag, " run ", r.left[tag], s.notes(c.otherwise))
		case own:
			s.add("budget_refused")
			return fmt.Sprint("refused ", tag, "  ", s.left[tag], s.notes(c.otherwise))
		}
	}
	s.reserve(c.reserve)
	if moves {
		r.reserve(c.reserve)
	}
	out := s.notes(c.append)
	for _, a := range []*modelStream{s, r.modelStream} {
		if c.settle != "" {
			a.settle(c.settle, c.reserved, c.used)
		}
		a.spend(c.spend)
	}
	return "granted" + out
}

// notes appends events of the script and gives their seqs.
func (s *modelStream) notes(n int) string {
	var b strings.Builder
	for range n {
		s.add("note")
		fmt.Fprint(&b, " ", len(s.kinds))
	}
	return b.String()
}

func (m *model) close(h *modelHandle) string {
	if !m.shut(h) {
		h.closed = true
		s := m.streams[h.id]
		s.add("session_closed")
		s.ended = true
	}
	return "ok"
}

func (m *model) drop(h *modelHandle) string {
	if !m.shut(h) {
		h.closed = true
		if s := m.streams[h.id]; !s.ended {
			s.add("session_closed")
			s.ended = true
		}
	}
	return "ok"
}

func (m *model) poolReserve(run string, amounts map[string]int64) string {
	r := m.runs[run]
	for _, tag := range inOrder(amounts) {
		if r.short(tag, amounts[tag]) {
			r.add("budget_refused")
			r.fired[tag] = true
			return "refused " + tag
		}
	}
	r.reserve(amounts)
	return "granted"
}

// end settles a run, which ends the sessions that it has open.
func (m *model) end(run string) {
	for _, s := range m.streams {
		if s.run == run && !s.ended {
			s.add("session_closed")
			s.ended = true
		}
	}
	m.runs[run].over = true
	m.runs[run].add("run_settled")
}
