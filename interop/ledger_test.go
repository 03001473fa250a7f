//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// account is what the events of one stream come to, by tag.
type account struct {
	granted, reserved, returned, spent, overdrawn, used, settled, left map[string]int64

	refused []string
	kinds   map[string]int
}

// accountOf adds a stream's events up, by nothing but their own words.
func accountOf(ctx context.Context, s store.Store, stream string) (account, error) {
	a := account{kinds: map[string]int{}}
	for _, m := range []*map[string]int64{&a.granted, &a.reserved, &a.returned, &a.spent, &a.overdrawn, &a.used, &a.settled, &a.left} {
		*m = map[string]int64{}
	}
	for from, more := int64(1), true; more; {
		var page []event.Event
		var err error
		if page, more, err = s.Events(ctx, stream, store.Query{From: from}); err != nil {
			return a, err
		}
		for _, e := range page {
			from = e.Seq + 1
			a.kinds[e.Kind]++
			if !event.Ledger(e.Kind) {
				continue
			}
			data, err := logjson.Object(e.Data)
			if err != nil {
				return a, err
			}
			tag, _ := data["tag"].(string)
			n := func(key string) int64 { v, _ := data[key].(int64); return v }
			switch e.Kind {
			case event.BudgetGranted:
				a.granted[tag] += n("amount")
				a.left[tag] += n("amount")
			case event.BudgetReserved:
				a.reserved[tag] += n("amount")
				if a.left[tag] -= n("amount"); a.left[tag] < 0 {
					return a, fmt.Errorf("%s %d: more was reserved than was left: %s", stream, e.Seq, e.Data)
				}
			case event.BudgetSpent:
				a.spent[tag] += n("amount")
				a.left[tag] = max(0, a.left[tag]-n("amount"))
			case event.BudgetRefused:
				a.refused = append(a.refused, tag)
			case event.BudgetSettled:
				a.returned[tag] += n("returned")
				a.overdrawn[tag] += n("overdrawn")
				a.used[tag] += n("used")
				a.settled[tag] += n("reserved")
				a.left[tag] = max(0, a.left[tag]+n("returned")-n("overdrawn"))
				if n("used")+n("returned") != n("reserved")+n("overdrawn") {
					return a, fmt.Errorf("%s %d: a settlement that does not add up: %s", stream, e.Seq, e.Data)
				}
			}
		}
	}
	return a, nil
}

// exact holds what was granted, less what was taken, more what was given back, to what
// the balance says is left. Nothing may be overdrawn but by a server that counts more
// than a request can be: then the balance ends at zero, not below.
func (a account) exact(ctx context.Context, s store.Store, stream string, over bool) (problems []string) {
	value, ok, err := s.Row(ctx, store.Balances, stream)
	if err != nil {
		return []string{err.Error()}
	}
	if !ok {
		if len(a.granted) > 0 {
			problems = append(problems, stream+": a grant without a balance")
		}
		return problems
	}
	row, err := logjson.Object(value)
	if err != nil {
		return []string{err.Error()}
	}
	left, _ := row["left"].(map[string]any)
	held, _ := row["held"].(map[string]any)
	for tag, granted := range a.granted {
		want := a.left[tag]
		if plain := granted - a.reserved[tag] + a.returned[tag] - a.spent[tag] - a.overdrawn[tag]; want != max(plain, 0) {
			problems = append(problems, fmt.Sprintf("%s: the moves of %s come to %d one by one and to %d together", stream, tag, want, plain))
		}
		if have, _ := left[tag].(int64); have != want {
			problems = append(problems, fmt.Sprintf("%s: %d %s are left, by its events %d", stream, have, tag, want))
		}
		if have, ok := held[tag].(int64); ok && have != a.reserved[tag]-a.settled[tag] {
			problems = append(problems, fmt.Sprintf("%s: %d %s are held, by its events %d", stream, have, tag, a.reserved[tag]-a.settled[tag]))
		}
		if a.overdrawn[tag] != 0 && !over {
			problems = append(problems, fmt.Sprintf("%s: %d %s are overdrawn", stream, a.overdrawn[tag], tag))
		}
	}
	return problems
}

// bound is the first tag that refused, "" where none did.
func (a account) bound() string {
	if len(a.refused) == 0 {
		return ""
	}
	return slices.Compact(a.refused)[0]
}
