package session_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

// raceEnv makes TestSixteenProcessesRace one of its processes: PATH.
const raceEnv = "ASHLAR_TEST_RACE"

// The pool of the race, and what each of its processes appends to a stream of its own.
const (
	racedPool   = "pool"
	racedUnits  = 100
	racedEvents = 20
)

// Sixteen processes append to one store and take units from one pool. None fails, no
// event is lost, and the pool gives what it has and no more.
func TestSixteenProcessesRace(t *testing.T) {
	if path := os.Getenv(raceEnv); path != "" {
		granted, err := race(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("granted", granted)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	st := newStore(t, path)
	must(t, st.Write(ctx, func(tx store.Tx) error {
		acc, err := budget.Open(tx, racedPool, nil)
		if err != nil {
			return err
		}
		return errors.Join(acc.Grant(budget.Grant{Tag: "units", Amount: racedUnits}, nil), acc.Save())
	}))
	const processes = 16
	granted := make([]int, processes)
	var wg sync.WaitGroup
	for i := range granted {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestSixteenProcessesRace$")
			cmd.Env = append(os.Environ(), raceEnv+"="+path)
			out, err := cmd.CombinedOutput()
			_, rest, found := strings.Cut(string(out), "granted ")
			if err != nil || !found {
				t.Errorf("%v: %s", err, out)
				return
			}
			word, _, _ := strings.Cut(rest, "\n")
			if granted[i], err = strconv.Atoi(word); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range granted {
		sum += n
	}
	b, err := budget.Read(st.Row(ctx, store.Balances, racedPool))
	must(t, err)
	if sum != racedUnits || b.Left["units"] != 0 {
		t.Errorf("%v were granted, %d of %d units; %d are left", granted, sum, racedUnits, b.Left["units"])
	}
	streams := 0
	heads, err := st.Streams(ctx, "", store.MaxPage)
	must(t, err)
	for _, h := range heads {
		if h.Stream != racedPool {
			streams++
			if h.Seq != racedEvents {
				t.Errorf("stream %s has %d events", h.Stream, h.Seq)
			}
		}
	}
	if streams != processes {
		t.Errorf("%d streams", streams)
	}
	sound(t, st)
}

// race appends, and takes units one by one until there are none.
func race(path string) (granted int, err error) {
	st, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer st.Close()
	for n := 0; ; n++ {
		var short bool
		err := st.Write(ctx, func(tx store.Tx) error {
			if n < racedEvents {
				if _, err := tx.Append(st.Owner(), event.Draft{Kind: "note", Data: map[string]any{"n": int64(n)}}); err != nil {
					return err
				}
			}
			acc, err := budget.Open(tx, racedPool, nil)
			if err != nil {
				return err
			}
			if short = acc.Short("units", 1); short {
				return acc.Refuse("units", 1, acc.Left["units"], nil)
			}
			return errors.Join(acc.Reserve("units", 1), acc.Save())
		})
		if err != nil {
			return granted, err
		}
		if !short {
			granted++
		} else if n >= racedEvents {
			return granted, nil
		}
	}
}
