package ident

import (
	"bytes"
	"crypto/rand"
	"errors"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

type fixed struct{ at time.Time }

func (f *fixed) Now() time.Time { return f.at }

func TestOrderedIDsSortAsTheyWereMade(t *testing.T) {
	t.Parallel()
	clock := &fixed{time.UnixMilli(1_700_000_000_000)}
	s := New(clock, rand.Reader)
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	var ids []string
	for i := range 10_000 {
		switch i {
		case 6000:
			clock.at = clock.at.Add(-time.Hour) // a clock that was set back
		case 8000:
			clock.at = clock.at.Add(2 * time.Hour)
		}
		id, err := s.Ordered()
		if err != nil || !form.MatchString(id) {
			t.Fatalf("%q, %v", id, err)
		}
		ids = append(ids, id)
	}
	if !sort.StringsAreSorted(ids) {
		t.Error("ids are not in the order of their making")
	}
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			t.Fatalf("%s was made twice", ids[i])
		}
	}
	if !strings.HasPrefix(ids[0], "018bcfe5-6800-7000-") {
		t.Errorf("the first id %s does not carry its time", ids[0])
	}
}

func TestEqualClockAndRandomnessGiveEqualIDs(t *testing.T) {
	t.Parallel()
	make3 := func() string {
		s := New(&fixed{time.UnixMilli(1)}, bytes.NewReader(bytes.Repeat([]byte("seed"), 100)))
		a, err1 := s.Ordered()
		b, err2 := s.Random()
		c, err3 := s.Hex(8)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if len(c) != 16 || b[14] != '4' {
			t.Errorf("got %s %s", b, c)
		}
		return a + b + c
	}
	if a, b := make3(), make3(); a != b {
		t.Errorf("%s and %s differ", a, b)
	}
}

func TestRandomnessThatEndsIsAnError(t *testing.T) {
	t.Parallel()
	s := New(&fixed{}, strings.NewReader("abc"))
	if id, err := s.Ordered(); err == nil {
		t.Errorf("made %s of three bytes", id)
	}
	if id, err := s.Random(); err == nil {
		t.Errorf("made %s of no bytes", id)
	}
}
