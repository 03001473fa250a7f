package budget

import (
	"slices"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// The tags that the kernel knows. Cost is in micro-USD, seconds are wall time.
const (
	Beats     = "beats"
	Tokens    = "tokens"
	Cost      = "cost"
	Seconds   = "seconds"
	ToolCalls = "tool_calls"
)

// Grant is what an owner gives. A grant without a tag names no unit.
type Grant struct {
	Amount int64
	Tag    string
	Desc   string
}

// Amounts are units by tag.
type Amounts map[string]int64

// Tags lists the tags in the order in which the kernel looks at them: the known
// ones first, then the others by name. Which of two short tags is named in a
// refusal depends on it.
func (a Amounts) Tags() []string {
	known := []string{Beats, Tokens, Cost, Seconds, ToolCalls}
	rank := func(tag string) int {
		if i := slices.Index(known, tag); i >= 0 {
			return i
		}
		return len(known)
	}
	tags := make([]string, 0, len(a))
	for tag := range a {
		tags = append(tags, tag)
	}
	slices.SortFunc(tags, func(x, y string) int {
		if d := rank(x) - rank(y); d != 0 {
			return d
		}
		if x < y {
			return -1
		}
		return 1
	})
	return tags
}

// Validate refuses negative amounts.
func (a Amounts) Validate() error {
	for _, tag := range a.Tags() {
		if a[tag] < 0 {
			return kernel.Errorf("budget", kernel.Validation, "%s is %d; an amount is never negative", named(tag), a[tag])
		}
	}
	return nil
}

// Balance is what is left of an account. Tags has the granted tags in the order
// of their first grant; Held is what was reserved and may still be settled.
type Balance struct {
	Tags []string
	Left Amounts
	Held Amounts
}

// Holds reports whether the account limits the tag.
func (b Balance) Holds(tag string) bool { return slices.Contains(b.Tags, tag) }

// Exhausted reports whether nothing is left of a tag that was granted.
func (b Balance) Exhausted() bool {
	for _, tag := range b.Tags {
		if b.Left[tag] == 0 {
			return true
		}
	}
	return false
}

// Read gives the balance of an account as it was last committed. An account that
// was never granted anything has none.
func Read(value []byte, ok bool, err error) (Balance, error) {
	b := Balance{Left: Amounts{}, Held: Amounts{}}
	if err != nil || !ok {
		return b, err
	}
	m, err := logjson.Object(value)
	if err != nil {
		return b, kernel.Errorf("budget", kernel.Corruption, "a balance does not decode: %w", err)
	}
	tags, _ := m["tags"].([]any)
	for _, t := range tags {
		if tag, ok := t.(string); ok {
			b.Tags = append(b.Tags, tag)
		}
	}
	for key, to := range map[string]Amounts{"left": b.Left, "held": b.Held} {
		amounts, _ := m[key].(map[string]any)
		for tag, v := range amounts {
			to[tag], _ = v.(int64)
		}
	}
	return b, nil
}

// Row is the projection's row, which Read reads.
func (b Balance) Row() ([]byte, error) {
	tags := make([]any, len(b.Tags))
	for i, t := range b.Tags {
		tags[i] = t
	}
	amounts := func(a Amounts) map[string]any {
		m := make(map[string]any, len(a))
		for tag, n := range a {
			m[tag] = n
		}
		return m
	}
	return logjson.Marshal(map[string]any{"tags": tags, "left": amounts(b.Left), "held": amounts(b.Held)})
}

// Apply folds one event into the balance: the projection is what this gives over
// a stream's budget events in order, and `log verify` compares the two.
func (b *Balance) Apply(e event.Event) error {
	if !event.Ledger(e.Kind) {
		return nil
	}
	data, err := logjson.Object(e.Data)
	if err != nil {
		return kernel.Errorf("budget", kernel.Corruption, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
	}
	b.move(e.Kind, data)
	return nil
}

// move is the one place where a balance changes. A tag that was never granted
// has no balance, so nothing is taken from it.
func (b *Balance) move(kind string, data map[string]any) {
	tag, _ := data["tag"].(string)
	number := func(key string) int64 { n, _ := data[key].(int64); return n }
	amount := number("amount")
	if kind == event.BudgetGranted {
		if !b.Holds(tag) {
			b.Tags = append(b.Tags, tag)
		}
		b.Left[tag] += amount
		return
	}
	if !b.Holds(tag) {
		return
	}
	switch kind {
	case event.BudgetReserved:
		b.Left[tag] -= amount
		if _, child := data["child"]; !child && Settled(tag) {
			b.Held[tag] += amount
		}
	case event.BudgetSpent:
		b.Left[tag] = max(0, b.Left[tag]-amount)
	case event.BudgetSettled:
		b.Held[tag] -= number("reserved")
		b.Left[tag] = max(0, b.Left[tag]+number("returned")-number("overdrawn"))
	}
}

// Settled reports whether reservations of the tag are settled against use.
func Settled(tag string) bool { return tag == Tokens || tag == Cost }

func named(tag string) string {
	if tag == "" {
		return "the amount"
	}
	return tag
}

// Load gives the balance of an account within a transaction.
func Load(tx store.Tx, stream string) (Balance, error) {
	return Read(tx.Row(store.Balances, stream))
}
