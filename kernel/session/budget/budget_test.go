package budget_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
)

func TestTagsComeInTheFixedOrder(t *testing.T) {
	t.Parallel()
	a := budget.Amounts{"z": 1, "tool_calls": 1, "seconds": 1, "": 1, "cost": 1, "beats": 1, "tokens": 1, "a": 1}
	if got := strings.Join(a.Tags(), ","); got != "beats,tokens,cost,seconds,tool_calls,,a,z" {
		t.Errorf("%s", got)
	}
	a["cost"] = -1
	if err := a.Validate(); !errors.Is(err, kernel.Validation) || !strings.Contains(err.Error(), "cost is -1") {
		t.Errorf("%v", err)
	}
}

// Each line is one event of the account, and what is left and held after it.
func TestABalanceIsTheFoldOverItsEvents(t *testing.T) {
	t.Parallel()
	b := budget.Balance{Left: budget.Amounts{}, Held: budget.Amounts{}}
	for _, c := range []struct{ kind, data, want string }{
		{event.BudgetReserved, `{"amount":5,"tag":"tokens"}`, "0 0"}, // never granted, so it counts for nothing
		{event.BudgetGranted, `{"amount":100,"tag":"tokens"}`, "100 0"},
		{event.BudgetReserved, `{"amount":60,"tag":"tokens"}`, "40 60"},
		{event.BudgetRefused, `{"amount":50,"remaining":40,"tag":"tokens"}`, "40 60"},
		{event.BudgetSettled, `{"reserved":60,"returned":35,"tag":"tokens","used":25}`, "75 0"},
		{event.BudgetReserved, `{"amount":20,"child":"c","tag":"tokens"}`, "55 0"}, // a child's units are not settled
		{event.BudgetReserved, `{"amount":10,"tag":"tokens"}`, "45 10"},
		{event.BudgetSettled, `{"overdrawn":90,"reserved":10,"returned":0,"tag":"tokens","used":100}`, "0 0"},
		{event.BudgetGranted, `{"amount":3,"tag":"tokens"}`, "3 0"},
		{event.BudgetSpent, `{"amount":9,"tag":"tokens"}`, "0 0"},
		{event.MsgUser, `{"amount":9,"tag":"tokens"}`, "0 0"},
	} {
		if err := b.Apply(event.Event{Kind: c.kind, Data: []byte(c.data)}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(b.Left["tokens"], " ", b.Held["tokens"]); got != c.want {
			t.Errorf("after %s %s: %s, want %s", c.kind, c.data, got, c.want)
		}
	}
	if !b.Exhausted() {
		t.Error("nothing is left and it is not exhausted")
	}
	if err := b.Apply(event.Event{Kind: event.BudgetSpent, Data: []byte("{")}); !errors.Is(err, kernel.Corruption) {
		t.Errorf("a torn event: %v", err)
	}
}
