package knl

import (
	"context"
	"crypto/sha256"

	"ashlar/kernel/config"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
)

// mark is a prefix of a conversation whose size in tokens the provider has told:
// the envelope (system and tools) and so many messages.
type mark struct {
	envelope [32]byte
	digests  [][32]byte
	tokens   int64
}

// reply is what a port asks for where the request names no limit: its own, else what
// its wire asks for, which a budget may shorten. 0 is none.
type reply struct{ own, wire int64 }

// bound fills in what a request takes at most of tokens and cost: what the provider
// counted for the prefix that it has seen, half of the bytes of what is new, and the
// reply, whose limit the request names, or else its port. capped is the reply's limit
// where the request named none: what is left.
func (k *Kernel) bound(ctx context.Context, s *session.Session, request map[string]any, r reply, p *pending) (capped int64, err error) {
	input, err := k.input(s.ID(), request, p)
	if err != nil {
		return 0, err
	}
	reply := r.own
	if n, ok := request["max_tokens"].(int64); ok {
		reply = n
	}
	if reply <= 0 {
		if reply, err = longest(ctx, s, input, p.price); err != nil {
			return 0, err
		}
		if r.wire > 0 {
			reply = min(reply, r.wire)
		}
		if capped = reply; capped < 1 {
			reply, capped = 1, 0 // the reserve will say no, and record it
		}
	}
	p.input, p.tokens = input, input+reply
	if p.price != nil {
		p.cost = p.price.AtMost(input, reply)
	}
	return capped, nil
}

// longest is the longest reply that session and run both cover.
func longest(ctx context.Context, s *session.Session, input int64, price *config.Price) (int64, error) {
	most := int64(maxReply)
	if s.Has(budget.Tokens) {
		left, err := least(ctx, s, budget.Tokens)
		if err != nil {
			return 0, err
		}
		most = min(most, left-input)
	}
	if price != nil {
		left, err := least(ctx, s, budget.Cost)
		if err != nil {
			return 0, err
		}
		most = min(most, price.Reply(input, left))
	}
	return most, nil
}

// maxReply is the longest reply that is asked for where price and budget know no end.
const maxReply = 1 << 20

// least is what session and run both have left of a tag.
func least(ctx context.Context, s *session.Session, tag string) (int64, error) {
	left, ok, err := s.Remaining(ctx, tag)
	if err != nil {
		return 0, err
	}
	pool, bounded, err := s.RunRemaining(ctx, tag)
	if err != nil {
		return 0, err
	}
	switch {
	case ok && bounded:
		return min(left, pool), nil
	case bounded:
		return pool, nil
	}
	return left, nil
}

// input bounds a request's own tokens and leaves its mark in p.
func (k *Kernel) input(id string, request map[string]any, p *pending) (int64, error) {
	envelope, err := logjson.Marshal([]any{request["system"], request["tools"]})
	if err != nil {
		return 0, err
	}
	p.mark = mark{envelope: sha256.Sum256(envelope)}
	messages, _ := request["messages"].([]any)
	sizes := make([]int64, len(messages))
	p.mark.digests = make([][32]byte, 0, len(messages)+1) // and the reply
	total := int64(len(envelope))
	for i, m := range messages {
		one, ok := m.(*logjson.Packed)
		if !ok {
			if one, err = logjson.Pack(m); err != nil {
				return 0, err
			}
			messages[i] = one
		}
		sizes[i] = int64(len(one.JSON))
		total += sizes[i]
		p.mark.digests = append(p.mark.digests, one.Hash)
	}
	p.bytes = int(total)
	k.mu.Lock()
	known, ok := k.marks[id]
	k.mu.Unlock()
	if !ok || known.envelope != p.mark.envelope || len(known.digests) > len(messages) {
		return half(total), nil
	}
	for i, d := range known.digests {
		if p.mark.digests[i] != d {
			return half(total), nil
		}
	}
	fresh := int64(0)
	for _, n := range sizes[len(known.digests):] {
		fresh += n
	}
	return known.tokens + half(fresh), nil
}

func half(bytes int64) int64 { return (bytes + 1) / 2 }

// known keeps what the provider counted for a request and its reply.
func (k *Kernel) known(id string, m mark, content any, tokens int64) {
	if m.digests == nil {
		return
	}
	b, err := logjson.Marshal(map[string]any{"role": "assistant", "content": content})
	if err != nil {
		return
	}
	m.digests = append(m.digests, sha256.Sum256(b))
	m.tokens = tokens
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.marks == nil {
		k.marks = map[string]mark{}
	}
	k.marks[id] = m
}
