package knl

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// allotment reads the option budget of an opening: what grants reads, and
// {from_parent = {beats = 2, tokens = 1000}}, the parent's units by tag.
func allotment(v vm.Value) (own, fromParent []budget.Grant, err error) {
	m, _ := v.(map[string]any)
	byTag, ok := m["from_parent"].(map[string]any)
	if !ok {
		return grants(v)
	}
	for key := range m {
		if key != "from_parent" && key != "desc" {
			return nil, nil, vm.Errorf(string(kernel.Validation), "budget: from_parent by tag takes no %q beside it but desc", key)
		}
	}
	if len(byTag) == 0 {
		return nil, nil, vm.Errorf(string(kernel.Validation), "budget.from_parent is empty: give a number, or amounts by tag")
	}
	desc, _ := m["desc"].(string)
	for tag, n := range byTag {
		g := budget.Grant{Tag: tag, Desc: desc}
		if g.Amount, err = units(tag, n); err != nil {
			return nil, nil, err
		}
		fromParent = append(fromParent, g)
	}
	fromParent = sorted(fromParent)
	for i := range fromParent {
		fromParent[i].Desc = desc
	}
	return nil, fromParent, nil
}

// treeFuncs read the sessions that a run has opened.
func (k *Kernel) treeFuncs() []vm.Function {
	return []vm.Function{{
		Name: "page", Doc: "A page of a session of this run by its id, one that has ended too, and whether there is more.",
		Params:  []vm.Param{{Name: "session", Type: vm.String}, {Name: "from", Type: vm.Integer, Optional: true}},
		Results: []vm.Param{{Name: "events", Type: vm.List}, {Name: "truncated", Type: vm.Boolean}},
		Effect:  vm.Read, Record: vm.RecordNone, Waits: true,
		Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
			book, err := k.Book(ctx, nil)
			if err != nil {
				return nil, err
			}
			return page(sameEnd(ctx, c, func() ([]event.Event, bool, error) {
				return book.Events(ctx, c.Str(0), max(c.Int(1, 1), 1))
			}))
		},
	}}
}
