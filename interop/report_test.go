//go:build interop

package interop

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// mostProblems is how many of them are printed.
const mostProblems = 40

// report prints how runs ended, by wire, and fails the test for each that is wrong.
func report(t *testing.T, all []outcome, requests map[string]int, took time.Duration) {
	t.Helper()
	table := map[string]map[string]int{}
	var columns []string
	var calls, wrong, over int
	var tokens int64
	var slowest time.Duration
	for i, o := range all {
		column := o.variant.String()
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		if table[o.ending] == nil {
			table[o.ending] = map[string]int{}
		}
		table[o.ending][column]++
		calls, tokens, slowest = calls+o.calls, tokens+o.used, max(slowest, o.took)
		if o.over {
			over++
		}
		if len(o.problems) > 0 {
			if wrong++; wrong <= mostProblems {
				t.Errorf("run %d (%s, %s, short of %q): %s", i, o.variant, o.word, o.short, strings.Join(o.problems, "; "))
			}
		}
	}
	slices.Sort(columns)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "ending\t%s\tall\t\n", strings.Join(columns, "\t"))
	for _, ending := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(w, "%s\t", ending)
		sum := 0
		for _, c := range columns {
			sum += table[ending][c]
			fmt.Fprintf(w, "%d\t", table[ending][c])
		}
		fmt.Fprintf(w, "%d\t\n", sum)
	}
	w.Flush()
	served := 0
	for _, n := range requests {
		served += n
	}
	fmt.Printf("%d runs in %s, the slowest %s; %d calls by the log, %d by the server; %d tokens settled, in %d runs beyond the reserve; %d runs with something wrong\n",
		len(all), took.Round(time.Millisecond), slowest.Round(time.Millisecond), calls, served, tokens, over, wrong)
	if calls != served {
		t.Errorf("the log knows of %d calls, the server of %d: %v", calls, served, requests)
	}
	if ok := table["ok"]; len(ok) != len(columns) {
		t.Errorf("no run ended well on some wires: %v", ok)
	}
}
