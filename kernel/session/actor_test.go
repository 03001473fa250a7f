package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
)

// actor is one goroutine: it has handles of its own, on sessions that others may have
// open too.
type actor struct {
	*world
	r       *rand.Rand
	handles []*held
}

// act carries out one operation.
func (a *actor) act() {
	n := a.r.IntN(1000)
	if n < 130 || len(a.handles) == 0 && n < 870 {
		a.shared(a.open)
		return
	}
	switch {
	case n < 820:
		a.shared(a.commit)
	case n < 870:
		a.shared(a.close)
	case n < 910:
		a.shared(a.pool)
	case n < 997:
		a.alone([]func(){a.resume, a.remaining, a.drop}[a.r.IntN(3)])
	default:
		a.alone(a.end)
	}
}

func (a *actor) shared(do func()) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	do()
}

func (a *actor) alone(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// told carries out an operation and notes its place; one that wrote nothing takes the
// next.
func (a *actor) told(name string, do func(context.Context) string, want func(*model) string) {
	var at int64
	got := do(context.WithValue(ctx, placeKey{}, &at))
	if at == 0 {
		at = a.st.count.Add(1)
	}
	a.did(at, name, got, want)
}

func (a *actor) handle() *held { return a.handles[a.r.IntN(len(a.handles))] }

func (a *actor) hold(s *session.Session, at *place, m *modelHandle) {
	if len(a.handles) == 12 {
		a.handles = slices.Delete(a.handles, 0, 1)
	}
	a.handles = append(a.handles, &held{s, at, m})
	a.steps.Lock()
	defer a.steps.Unlock()
	a.steps.known = append(a.steps.known, s.ID())
}

func (a *actor) grants(most int) (list []given, grants []budget.Grant) {
	tags := []string{"beats", "tokens", "cost", "units", ""}
	for _, i := range a.r.Perm(len(tags))[:most] {
		g := given{tags[i], int64(a.r.IntN(60))}
		list, grants = append(list, g), append(grants, budget.Grant{Tag: g.tag, Amount: g.n})
	}
	return list, grants
}

func (a *actor) open() {
	at := a.places[a.r.IntN(len(a.places))]
	o, name := session.Opening{}, "open"
	var parent *modelHandle
	var list []given
	if len(a.handles) > 0 && a.r.IntN(2) == 0 {
		p := a.handle()
		at, parent, name = p.at, p.model, "child"
		o.Parent = p.Session
		list, o.FromParent = a.grants(1 + a.r.IntN(2))
	} else {
		list, o.Budget = a.grants(a.r.IntN(4))
	}
	ids, err := at.book.NewIDs()
	if err != nil {
		a.t.Error(err)
		return
	}
	o.IDs = ids
	a.told(fmt.Sprint(name, " ", ids.Session, " ", list), func(ctx context.Context) string {
		s, err := at.book.Open(ctx, o)
		if err == nil {
			a.hold(s, at, &modelHandle{id: ids.Session, run: at.run.ID()})
		}
		return outcome(err)
	}, func(m *model) string { return m.open(ids.Session, at.run.ID(), parent, list) })
}

func (a *actor) commit() {
	h := a.handle()
	var c change
	switch a.r.IntN(10) {
	case 0, 1:
		c.append = 1 + a.r.IntN(3)
	case 2, 3, 4:
		c.reserve = amountsOf(a.r, 3, 15)
	case 5:
		c.settle, c.reserved, c.used = []string{"tokens", "cost"}[a.r.IntN(2)], int64(a.r.IntN(20)), int64(a.r.IntN(25))
	case 6:
		c.spend = amountsOf(a.r, 2, 12)
	case 7:
		switch a.r.IntN(3) {
		case 0:
			c.settle = "beats"
		case 1:
			c.reserve = map[string]int64{"beats": -1}
		case 2:
			c.spend = map[string]int64{"units": -3}
		}
	default:
		c = change{reserve: amountsOf(a.r, 3, 15), need: amountsOf(a.r, 1, 9), append: a.r.IntN(3), otherwise: a.r.IntN(2), spend: amountsOf(a.r, 1, 5)}
		if a.r.IntN(2) == 0 {
			c.settle, c.reserved, c.used = "tokens", int64(a.r.IntN(20)), int64(a.r.IntN(25))
		}
	}
	b := session.Batch{Reserve: c.reserve, Need: c.need, Append: a.notes(c.append), Otherwise: a.notes(c.otherwise), Spend: c.spend}
	if c.settle != "" {
		b.Settle = []session.Settlement{{Tag: c.settle, Reserved: c.reserved, Used: c.used}}
	}
	a.told(fmt.Sprintf("commit %s %+v", h.ID(), c), func(ctx context.Context) string {
		r, err := h.Commit(ctx, b)
		if err != nil {
			if h.Closed() && a.r.IntN(2) == 0 {
				a.handles = slices.DeleteFunc(a.handles, func(other *held) bool { return other == h })
			}
			return outcome(err)
		}
		out := "granted"
		if !r.Granted {
			out = fmt.Sprint("refused ", r.Tag, " ", r.Bound, " ", r.Remaining)
		}
		for _, seq := range r.Seqs {
			out += fmt.Sprint(" ", seq)
		}
		return out
	}, func(m *model) string { return m.commit(h.model, c) })
}

func (a *actor) notes(n int) (drafts []event.Draft) {
	for range n {
		text := make([]byte, a.r.IntN(600))
		for i := range text {
			text[i] = byte('a' + a.r.IntN(3))
		}
		drafts = append(drafts, event.Draft{Kind: "note", Data: map[string]any{"text": string(text)}})
	}
	return drafts
}

func (a *actor) close() {
	h := a.handle()
	a.told("close "+h.ID(), func(ctx context.Context) string { return outcome(h.Close(ctx, "", "")) },
		func(m *model) string { return m.close(h.model) })
}

func (a *actor) pool() {
	at := a.places[a.r.IntN(len(a.places))]
	if a.r.IntN(3) == 0 {
		reserved, used := int64(a.r.IntN(20)), int64(a.r.IntN(25))
		a.told("use", func(ctx context.Context) string { return outcome(at.run.SettleUse(ctx, "tokens", reserved, used)) },
			func(m *model) string { m.runs[at.run.ID()].settle("tokens", reserved, used); return "ok" })
		return
	}
	amounts := amountsOf(a.r, 3, 15)
	a.told(fmt.Sprint("pool ", amounts), func(ctx context.Context) string {
		granted, tag, err := at.run.Reserve(ctx, amounts)
		switch {
		case err != nil:
			return outcome(err)
		case granted:
			return "granted"
		}
		return "refused " + tag
	}, func(m *model) string { return m.poolReserve(at.run.ID(), amounts) })
}

func (a *actor) resume() {
	a.steps.Lock()
	known := slices.Clone(a.steps.known)
	a.steps.Unlock()
	if len(known) == 0 {
		return
	}
	// The newest are those that may still be open.
	id := known[len(known)-1-a.r.IntN(min(len(known), 40))]
	at := a.places[a.r.IntN(len(a.places))]
	list, grants := a.grants(a.r.IntN(2))
	a.told("resume "+id, func(ctx context.Context) string {
		s, err := at.book.Resume(ctx, id, session.Resuming{Budget: grants})
		if err == nil {
			a.hold(s, at, &modelHandle{id: id, run: at.run.ID()})
		}
		return outcome(err)
	}, func(m *model) string { return m.resume(id, at.run.ID(), list) })
}

func (a *actor) remaining() {
	if len(a.handles) == 0 {
		return
	}
	h, tag := a.handle(), []string{"beats", "tokens", "cost", "units", ""}[a.r.IntN(5)]
	a.told("remaining "+h.ID(), func(ctx context.Context) string {
		left, ok, err := h.Remaining(ctx, tag)
		inRun, bounded, rerr := h.RunRemaining(ctx, tag)
		if err != nil || rerr != nil {
			return fmt.Sprint(err, rerr)
		}
		return fmt.Sprint(left, ok, inRun, bounded)
	}, func(m *model) string {
		s, r := m.streams[h.model.id], m.runs[h.model.run]
		return fmt.Sprint(s.left[tag], s.has(tag), r.left[tag], r.has(tag))
	})
}

func (a *actor) drop() {
	if len(a.handles) == 0 {
		return
	}
	h := a.handle()
	a.told("drop "+h.ID(), func(ctx context.Context) string {
		h.Drop()
		return outcome(a.st.Flush(ctx))
	}, func(m *model) string { return m.drop(h.model) })
}

// end settles a run, with every session that it has open, and begins another.
func (a *actor) end() {
	i := a.r.IntN(len(a.places))
	at := a.places[i]
	a.told("end "+at.run.ID(), func(ctx context.Context) string {
		if err := at.book.CloseRun(ctx, session.ReasonError, "over"); err != nil {
			return outcome(err)
		}
		if err := at.run.Settle(ctx, run.Outcome{State: run.Completed}); err != nil {
			return outcome(err)
		}
		row, err := a.ledger.Get(ctx, at.run.ID())
		if err != nil {
			return outcome(err)
		}
		return fmt.Sprint("ok ", row.StoppedBy)
	}, func(m *model) string {
		m.end(at.run.ID())
		// Which of several bounds was first is for who asked first to say.
		fired := m.runs[at.run.ID()].fired
		if bound := at.run.Bound(); fired[bound] || bound == "" && len(fired) == 0 {
			return "ok " + bound
		}
		return fmt.Sprint("ok one of ", fired)
	})
	a.places[i] = a.begin(a.r)
}
