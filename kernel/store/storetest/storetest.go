package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// Options are what a store under test is opened with.
type Options struct {
	Now    func() time.Time
	Redact func([]byte) []byte
}

// Subject is a store under test.
type Subject struct {
	// Open opens a new, empty database.
	Open func(t *testing.T, o Options) store.Store
	// Reopen opens the database of s once more, as another process would; nil
	// when the store lives in one opening only.
	Reopen func(t *testing.T, s store.Store) store.Store
	// PlantV1 puts a row of schema version 1 at the end of a stream.
	PlantV1 func(t *testing.T, s store.Store, stream string, seq int64, kind, data string)
}

// Run holds the subject to the suite.
func Run(t *testing.T, sub Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"SeqTimeAndHashAreTheStores":        seqTimeAndHash,
		"TheChainHolds":                     chainHolds,
		"AFailedWriteLeavesNothing":         failedWriteLeavesNothing,
		"AWriteThatIgnoresAFailureIsUndone": ignoredFailureIsUndone,
		"APanicIsTheFailureOfItsOwnWrite":   panicFailsAlone,
		"ConcurrentWritersAllLand":          concurrentWriters,
		"LaterRidesBeforeTheNextWrite":      laterRidesBefore,
		"LaterIsFlushedAndReported":         laterFlushed,
		"CloseCommitsWhatIsQueued":          closeCommits,
		"ACancelledWriteLeavesNothing":      cancelledWrite,
		"PagesCoverAStreamOnce":             paging,
		"LastAndKindsSelect":                lastAndKinds,
		"BodiesOfRequestsComeWhenAsked":     requestBodies,
		"ARequestOfAnyShapeIsKept":          oddRequests,
		"LargeBodiesComeBackWhole":          largeBodies,
		"SecretsAreGoneBeforeTheHash":       redaction,
		"ABrokenRedactorStoresNothing":      brokenRedactor,
		"ProjectionsFollowTheirTransaction": projections,
		"ContentIsKeptByHash":               content,
		"OldShapesAreReadInTheNewOne":       upcast,
		"ATransactionSeesItsOwnWrites":      ownWrites,
		"ATransactionEndsWithItsFunction":   txEnds,
		"PreparedDraftsAreTheSame":          prepared,
		"TwoOpeningsInterleave":             twoOpenings,
		"AnOwnerLivesAsLongAsItsOpening":    ownerLives,
		"StreamsAreListedWithTheirHeads":    streams,
		"RemovedStreamsLeaveTheOthersWhole": removal,
		"EventsOfAnotherLogComeAsTheyAre":   appendedAs,
		"QueriesAnswerFromTheView":          queries,
		"WhatIsNoQueryIsRefused":            refusedQueries,
		"ARunawayQueryEndsInTime":           runawayQueries,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, sub)
		})
	}
}

// clock is a time that moves by a millisecond a reading.
func clock() func() time.Time {
	var ms int64 = 1_757_300_000_000
	return func() time.Time { ms++; return time.UnixMilli(ms) }
}

func write(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Write(context.Background(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func appendOne(t *testing.T, s store.Store, stream, kind string, data map[string]any) event.Event {
	t.Helper()
	var e event.Event
	write(t, s, func(tx store.Tx) (err error) {
		e, err = tx.Append(stream, event.Draft{Kind: kind, Data: data})
		return err
	})
	return e
}

func all(t *testing.T, s store.Store, stream string) []event.Event {
	t.Helper()
	var out []event.Event
	q := store.Query{Bodies: true}
	for {
		page, more, err := s.Events(context.Background(), stream, q)
		if err != nil {
			t.Fatalf("events of %s: %v", stream, err)
		}
		out = append(out, page...)
		if !more {
			return out
		}
		q.From = out[len(out)-1].Seq + 1
	}
}

// verifyChain recomputes every link of a stream.
func verifyChain(t *testing.T, s store.Store, stream string) {
	t.Helper()
	prev := event.Origin(stream)
	events := all(t, s, stream)
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d of %s has seq %d", i+1, stream, e.Seq)
		}
		if want := event.Link(prev, &e, event.HashOf(e.Meta), event.HashOf(e.Data)); e.Hash != want {
			t.Fatalf("%s:%d: hash %s, want %s (meta %.200s data %.200s)", stream, e.Seq, e.Hash, want, e.Meta, e.Data)
		}
		prev = e.Hash
	}
	head, err := s.Head(context.Background(), stream)
	if err != nil || head.Seq != int64(len(events)) || len(events) > 0 && head.Hash != prev {
		t.Fatalf("head of %s is %+v, %v; the events end at %d %s", stream, head, err, len(events), prev)
	}
}

func encodeJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := logjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func text(n int, of string) string {
	b := make([]byte, 0, n)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%s %d ", of, i)
	}
	return string(b)
}
