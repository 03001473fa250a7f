package session

import (
	"context"
	"fmt"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// The owners that the kernel reserves: nobody names them.
const (
	Anonymous = "anon"
	System    = "system"
)

// Opening says how a session is opened.
type Opening struct {
	// IDs are those of the session and its scope; nil makes new ones. A replay gives the
	// recorded ones.
	IDs *OpeningIDs

	Owner  string         // "" is the parent's owner, or Anonymous
	Budget []budget.Grant // the owner's grants, one for each tag
	Meta   map[string]any // labels of session_opened; scalars

	// A child gets its budget from its parent, in one transaction. A grant
	// without a tag takes the parent's first tag.
	//
	// What a child is given is spent, as the parent sees it: neither its end nor a
	// settlement in the child brings any of it back. The run's pool is not asked for
	// it. An allocation only divides what sessions may do, and what they do is what
	// the pool pays: a child's reserve takes from the child and from the pool, as
	// every session's does, so no unit is paid for twice on its way down a tree, and
	// a pool smaller than the grants still bounds them all. A tag that the parent
	// was never granted is not limited there: the child gets its grant, the parent's
	// event says so, and no balance changes.
	Parent     *Session
	FromParent []budget.Grant
}

// OpeningIDs name a session and the scope of its budget.
type OpeningIDs struct{ Session, Scope string }

// NewIDs makes the ids of a session that is going to be opened.
func (b *Book) NewIDs() (*OpeningIDs, error) {
	var ids OpeningIDs
	for _, id := range []*string{&ids.Session, &ids.Scope} {
		var err error
		if *id, err = b.ids.Random(); err != nil {
			return nil, kernel.Errorf("session.open", kernel.Storage, "no id: %w", err)
		}
	}
	return &ids, nil
}

// Open opens a session. An allocation that the parent does not cover is recorded
// there, gives kind refused and opens nothing. Other kinds: validation for an
// owner that is reserved or a budget that contradicts itself, closed for a
// parent that is closed.
func (b *Book) Open(ctx context.Context, o Opening) (*Session, error) {
	const op = "session.open"
	if err := o.check(b); err != nil {
		return nil, as(op, err)
	}
	owner := o.Owner
	if owner == "" && o.Parent != nil {
		owner = o.Parent.owner
	}
	if owner == "" {
		owner = Anonymous
	}
	ids := o.IDs
	if ids == nil {
		var err error
		if ids, err = b.NewIDs(); err != nil {
			return nil, err
		}
	}
	id, scope := ids.Session, ids.Scope
	var (
		r       = row{owner: owner, scope: scope, run: b.runID()}
		tags    []string
		epoch   int64
		refused error
		after   func(context.Context) error
	)
	err := b.store.Write(ctx, func(tx store.Tx) error {
		grants := o.Budget
		more := budget.Fields{}
		data := map[string]any{"scope_id": scope, "owner": owner}
		if p := o.Parent; p != nil {
			var err error
			if grants, refused, err = p.allocate(tx, o.FromParent, id); err != nil || refused != nil {
				return err // a refusal is committed
			}
			data["parent"], more["parent"] = p.id, p.id
			if err := tx.PutRow(store.Children, p.id+"/"+id, []byte("{}")); err != nil {
				return err
			}
		}
		if _, err := tx.Append(id, event.Draft{Kind: event.SessionOpened, Meta: o.Meta, Data: data}); err != nil {
			return err
		}
		acc, err := account(tx, id, scope)
		if err != nil {
			return err
		}
		for _, g := range grants {
			if err := acc.Grant(g, more); err != nil {
				return err
			}
		}
		if err := acc.Save(); err != nil {
			return err
		}
		if epoch, _, err = b.take(tx, id); err != nil {
			return err
		}
		r.parent, tags = str(data, "parent"), acc.Tags
		if err := r.write(tx, id); err != nil {
			return err
		}
		after, err = b.join(tx, id)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, as(op, err)
	}
	return b.handle(id, r, epoch, tags), as(op, after(ctx))
}

func (o Opening) check(b *Book) error {
	const op = "session.open"
	switch {
	case o.Owner == Anonymous || o.Owner == System:
		return kernel.Errorf(op, kernel.Validation, "the owner %q is reserved; leave owner out, or name a principal", o.Owner)
	case o.Parent == nil && len(o.FromParent) > 0:
		return kernel.Errorf(op, kernel.Validation, "from_parent without a parent")
	case o.Parent != nil && len(o.FromParent) == 0:
		return kernel.Errorf(op, kernel.Validation, "a parent without from_parent")
	case o.Parent != nil && len(o.Budget) > 0:
		return kernel.Errorf(op, kernel.Validation, "from_parent together with an amount")
	case o.Parent != nil && o.Parent.book.store != b.store:
		return kernel.Errorf(op, kernel.Validation, "a child lives in its parent's store")
	case o.Parent != nil && o.Parent.Closed():
		return kernel.Errorf(op, kernel.Closed, "the parent %s is closed", o.Parent.id)
	}
	if err := event.Validate(event.Draft{Kind: event.SessionOpened, Meta: o.Meta}, true); err != nil {
		return err
	}
	if err := checkGrants(o.Budget); err != nil {
		return err
	}
	return checkGrants(o.FromParent)
}

// allocate takes a child's grants from this session, all or none. They are the
// ledger's, so they need no lease.
func (s *Session) allocate(tx store.Tx, wanted []budget.Grant, child string) (grants []budget.Grant, refused, err error) {
	if r, ok, err := readRow(tx, s.id); err != nil {
		return nil, nil, err
	} else if ok && r.ended { // through another handle
		return nil, nil, kernel.Errorf("session.open", kernel.Closed, "the parent %s has ended", s.id)
	}
	acc, err := account(tx, s.id, s.scope)
	if err != nil {
		return nil, nil, err
	}
	amounts := budget.Amounts{}
	for _, g := range wanted {
		if g.Tag == "" && len(acc.Tags) > 0 {
			g.Tag = acc.Tags[0]
		}
		if _, twice := amounts[g.Tag]; twice {
			return nil, nil, kernel.Errorf("session.open", kernel.Validation, "two grants for the tag %q; give one", g.Tag)
		}
		amounts[g.Tag] = g.Amount
		grants = append(grants, g)
	}
	for _, tag := range amounts.Tags() {
		if acc.Short(tag, amounts[tag]) {
			left := acc.Left[tag]
			refused = kernel.Errorf("session.open", kernel.Refused, "%s asked of the parent %s, which has %d left", units(amounts[tag], tag), s.id, left)
			return nil, refused, acc.Refuse(tag, amounts[tag], left, budget.Fields{"child": child})
		}
	}
	for _, tag := range amounts.Tags() {
		if err := acc.Allocate(tag, amounts[tag], child); err != nil {
			return nil, nil, err
		}
	}
	return grants, nil, acc.Save()
}

func units(n int64, tag string) string {
	if tag == "" {
		return fmt.Sprint(n, " units")
	}
	return fmt.Sprint(n, " ", tag)
}
