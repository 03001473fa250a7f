// Package pattern matches Lua 5.1 patterns (§5.4.1 of the manual) in a way that can
// be interrupted: a pattern such as ("a?"):rep(30) takes exponential time, and
// gopher-lua's own matcher neither counts its steps nor looks at a context.
//
// It follows the matcher of the reference implementation, with %f and %g of later
// versions. It knows nothing of Lua states.
package pattern

import (
	"errors"
	"fmt"
)

// Bounds of a match.
const (
	MaxCaptures = 32
	maxDepth    = 4000    // pattern items open at once
	pollSteps   = 1 << 13 // steps between two polls
)

const (
	capOpen     = -1 // a capture whose end is not reached yet
	capPosition = -2 // `()`: the position itself
)

// Capture is one captured part of the subject. For a position capture Position is
// true and Start is the position, from 0.
type Capture struct {
	Start, End int
	Position   bool
}

// Matcher matches one pattern against one subject. Poll is asked from time to time
// and its error ends the match.
type Matcher struct {
	src, pat string
	poll     func() error
	anchored bool

	level int
	caps  [MaxCaptures]struct{ start, len int }
	depth int
	steps int
	next  int // steps at which poll is asked again
}

// New makes a matcher; poll may be nil.
func New(src, pat string, poll func() error) *Matcher {
	m := &Matcher{src: src, pat: pat, poll: poll}
	if len(pat) > 0 && pat[0] == '^' {
		m.anchored, m.pat = true, pat[1:]
	}
	return m
}

// Anchored reports whether the pattern matches at the first position only.
func (m *Matcher) Anchored() bool { return m.anchored }

// Next finds the first match at or after init. ok is false when there is none.
// Errors are those of a malformed pattern, of one too complex, and poll's.
func (m *Matcher) Next(init int) (start, end int, ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			failed, own := p.(failure)
			if !own {
				panic(p)
			}
			ok, err = false, failed.err
		}
	}()
	for s := init; s <= len(m.src); s++ {
		m.level, m.depth = 0, 0
		if e := m.match(s, 0); e >= 0 {
			return s, e, true, nil
		}
		if m.anchored {
			break
		}
	}
	return 0, 0, false, nil
}

// Captures gives the captures of the last match, none when the pattern has none.
func (m *Matcher) Captures() ([]Capture, error) {
	out := make([]Capture, m.level)
	for i := range out {
		c := m.caps[i]
		switch c.len {
		case capOpen:
			return nil, errors.New("unfinished capture")
		case capPosition:
			out[i] = Capture{Start: c.start, Position: true}
		default:
			out[i] = Capture{Start: c.start, End: c.start + c.len}
		}
	}
	return out, nil
}

// failure carries an error through the recursion.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// step counts work; each call stands for about one comparison.
func (m *Matcher) step() {
	if m.steps++; m.steps >= m.next && m.poll != nil {
		m.next = m.steps + pollSteps
		if err := m.poll(); err != nil {
			panic(failure{err})
		}
	}
}

// match matches the pattern from p on at subject position s and gives the end of
// the match, -1 when there is none.
func (m *Matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for p < len(m.pat) {
		m.step()
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capPosition)
			}
			return m.open(s, p+1, capOpen)
		case ')':
			return m.close(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 >= len(m.pat) {
				fail("malformed pattern (ends with '%%')")
			}
			switch c := m.pat[p+1]; {
			case c == 'b':
				if s = m.balance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case c == 'f':
				next, ok := m.frontier(s, p+2)
				if !ok {
					return -1
				}
				p = next
				continue
			case c >= '0' && c <= '9':
				if s = m.back(s, c); s < 0 {
					return -1
				}
				p += 2
				continue
			}
		}
		ep := m.classEnd(p)
		var suffix byte
		if ep < len(m.pat) {
			suffix = m.pat[ep]
		}
		switch suffix {
		case '?':
			if s < len(m.src) && m.single(s, p, ep) {
				if e := m.match(s+1, ep+1); e >= 0 {
					return e
				}
			}
			p = ep + 1
		case '*':
			return m.most(s, p, ep, 0)
		case '+':
			return m.most(s, p, ep, 1)
		case '-':
			return m.fewest(s, p, ep)
		default:
			if s >= len(m.src) || !m.single(s, p, ep) {
				return -1
			}
			s, p = s+1, ep
		}
	}
	return s
}

// most matches an item as often as it can, at least min times, then the rest.
func (m *Matcher) most(s, p, ep, least int) int {
	n := 0
	for s+n < len(m.src) && m.single(s+n, p, ep) {
		m.step()
		n++
	}
	for ; n >= least; n-- {
		if e := m.match(s+n, ep+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *Matcher) fewest(s, p, ep int) int {
	for {
		if e := m.match(s, ep+1); e >= 0 {
			return e
		}
		if s >= len(m.src) || !m.single(s, p, ep) {
			return -1
		}
		s++
	}
}

func (m *Matcher) open(s, p, what int) int {
	if m.level >= MaxCaptures {
		fail("too many captures")
	}
	m.caps[m.level].start, m.caps[m.level].len = s, what
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *Matcher) close(s, p int) int {
	l := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.caps[i].len == capOpen {
			l = i
			break
		}
	}
	if l < 0 {
		fail("invalid pattern capture")
	}
	m.caps[l].len = s - m.caps[l].start
	e := m.match(s, p)
	if e < 0 {
		m.caps[l].len = capOpen
	}
	return e
}

// back matches what capture l captured.
func (m *Matcher) back(s int, l byte) int {
	i := int(l) - '1'
	if i < 0 || i >= m.level || m.caps[i].len == capOpen {
		fail("invalid capture index")
	}
	c := m.caps[i]
	if c.len == capPosition {
		return s
	}
	m.steps += c.len / 64
	if len(m.src)-s >= c.len && m.src[c.start:c.start+c.len] == m.src[s:s+c.len] {
		return s + c.len
	}
	return -1
}

func (m *Matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	begin, end := m.pat[p], m.pat[p+1]
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.step()
		switch c := m.src[i]; {
		case c == end:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == begin:
			depth++
		}
	}
	return -1
}

// frontier matches the empty place where the set begins to hold.
func (m *Matcher) frontier(s, p int) (next int, ok bool) {
	if p >= len(m.pat) || m.pat[p] != '[' {
		fail("missing '[' after '%%f' in pattern")
	}
	ep := m.classEnd(p)
	var prev, cur byte
	if s > 0 {
		prev = m.src[s-1]
	}
	if s < len(m.src) {
		cur = m.src[s]
	}
	return ep, !m.inSet(prev, p, ep-1) && m.inSet(cur, p, ep-1)
}
