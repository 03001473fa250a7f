package tree

import "testing"

func TestAStatLineIsReadWhateverTheProgramIsCalled(t *testing.T) {
	t.Parallel()
	const rest = " T 41 7 7 0 -1 4227084 62 0 0 0 0 0 0 0 20 0 1 0 75093 0 0"
	for _, name := range []string{"sh", "a b", ") S 1 (", "((", ""} {
		p, ok := parseStat(9, []byte("9 ("+name+")"+rest))
		if want := (Process{PID: 9, Parent: 41, State: 'T', Start: 75093}); !ok || p != want {
			t.Errorf("%q: %+v %v", name, p, ok)
		}
	}
	for _, broken := range []string{"", "9 (sh)", "9 (sh) S 1", "9 (sh) S x 1 1 0 -1 4 6 0 0 0 0 0 0 0 20 0 1 0 7"} {
		if p, ok := parseStat(9, []byte(broken)); ok {
			t.Errorf("%q gave %+v", broken, p)
		}
	}
}

func TestAnEmptyScopeHoldsNobody(t *testing.T) {
	t.Parallel()
	if members := (Scope{}).Members(); len(members) > 0 {
		t.Errorf("%v", members)
	}
}
