package run

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// Journal is what a run recorded of its script.
type Journal struct {
	Syscalls  []Syscall // in the order in which they ended
	Facts     []Syscall // what was so during the run
	Handovers []int     // Handovers[i] is the task of hand-over i+1
	Turns     []int64   // Turns[i] is the seq of the event that holds hand-over i+1, 0 where none does
	Exact     bool      // nothing was left out, no number is missing: a replay can be exact
}

// maxHandovers bounds what a damaged number can make the reader fill up.
const maxHandovers = 1 << 28

// ReadJournal reads the journal of a run. Hand-overs that are not recorded went
// to task 0.
func ReadJournal(ctx context.Context, from store.Reader, id string) (*Journal, error) {
	var all []event.Event
	q := store.Query{From: 1, Kinds: []string{event.Syscall, event.Handover}}
	for more := true; more; {
		var page []event.Event
		var err error
		if page, more, err = from.Events(ctx, StreamOf(id), q); err != nil {
			return nil, err
		}
		for _, e := range page {
			q.From = e.Seq + 1
		}
		all = append(all, page...)
	}
	return JournalOf(all)
}

// JournalOf reads the journal among the events of a run's stream.
func JournalOf(events []event.Event) (*Journal, error) {
	j := &Journal{Exact: true}
	var numbers numbers
	for _, e := range events {
		if e.Kind != event.Syscall && e.Kind != event.Handover {
			continue
		}
		data, err := logjson.Object(e.Data)
		if err != nil {
			return nil, kernel.Errorf("run.journal", kernel.Corruption, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
		}
		if e.Kind == event.Handover {
			if err := j.handover(e, data); err != nil {
				return nil, err
			}
			continue
		}
		for _, c := range syscallsOf(data) {
			c.Seq = e.Seq
			if c.N == 0 && c.K == 0 {
				j.Facts = append(j.Facts, c)
				continue
			}
			j.Exact = j.Exact && !c.Mark
			numbers.saw(c.N)
			j.Syscalls = append(j.Syscalls, c)
		}
	}
	j.Exact = j.Exact && numbers.whole()
	return j, nil
}

// Missing gives the smallest number of a call that the journal lacks although it has a
// greater one; 0 for none. In a run that was killed it is one that was under way.
func (j *Journal) Missing() int64 {
	var numbers numbers
	for _, c := range j.Syscalls {
		numbers.saw(c.N)
	}
	if numbers.whole() {
		return 0
	}
	return numbers.upTo + 1
}

// numbers tells whether the calls of a journal are numbered from 1 without a gap;
// they are recorded as they end, so a number may come before a smaller one.
type numbers struct {
	upTo  int64 // 1 to upTo were all seen
	ahead map[int64]bool
}

func (n *numbers) saw(i int64) {
	if n.ahead == nil {
		n.ahead = map[int64]bool{}
	}
	if i > n.upTo || i < 1 {
		n.ahead[i] = true
	}
	for n.ahead[n.upTo+1] {
		n.upTo++
		delete(n.ahead, n.upTo)
	}
}

func (n *numbers) whole() bool { return len(n.ahead) == 0 }

func (j *Journal) handover(e event.Event, data map[string]any) error {
	first, _ := data["n"].(int64)
	if first < 1 || first > maxHandovers {
		return kernel.Errorf("run.journal", kernel.Corruption, "%s:%d begins at hand-over %d", e.Stream, e.Seq, first)
	}
	if gap := int(first-1) - len(j.Handovers); gap > 0 {
		j.Handovers = append(j.Handovers, make([]int, gap)...)
		j.Turns = append(j.Turns, make([]int64, gap)...)
	}
	// An attempt that took the run up goes on where its replay ended.
	j.Handovers, j.Turns = j.Handovers[:first-1], j.Turns[:first-1]
	tasks, _ := data["tasks"].([]any)
	for _, v := range tasks {
		task, _ := v.(int64)
		j.Handovers, j.Turns = append(j.Handovers, int(task)), append(j.Turns, e.Seq)
	}
	return nil
}

// syscallsOf reads an event of one call, or of several that had one commit.
func syscallsOf(m map[string]any) []Syscall {
	list, ok := m["calls"].([]any)
	if !ok {
		return []Syscall{syscallOf(m)}
	}
	out := make([]Syscall, 0, len(list))
	for _, v := range list {
		if call, ok := v.(map[string]any); ok {
			out = append(out, syscallOf(call))
		}
	}
	return out
}

func syscallOf(m map[string]any) Syscall {
	c := Syscall{}
	c.N, _ = m["n"].(int64)
	c.K, _ = m["k"].(int64)
	task, _ := m["task"].(int64)
	c.Task = int(task)
	c.Name, _ = m["name"].(string)
	c.Args, _ = m["args"].([]any)
	c.ArgsHash, _ = m["args_hash"].(string)
	c.Steps, _ = m["steps"].([]any)
	c.Result, _ = m["result"].([]any)
	c.Error, _ = m["error"].(map[string]any)
	c.Mark, _ = m["mark"].(bool)
	c.Again, _ = m["again"].(bool)
	c.Notes, _ = m["notes"].(int64)
	return c
}
