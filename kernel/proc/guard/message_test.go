package guard

import (
	"reflect"
	"testing"
)

func TestAMessageComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	for _, m := range []*Message{
		{Kind: Hello},
		{Kind: Exited, ID: 1<<32 - 1, Number: -1},
		{Kind: Spawn, Flags: WithStdin, Files: 3, ID: 7, Path: "/bin/sh", Dir: "/", Argv: []string{"sh", "-c", "\xff"}, Env: []string{"A=", "B=\n"}},
	} {
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b[4:])
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Argv) == 0 && len(got.Env) == 0 {
			got.Argv, got.Env = nil, nil
		}
		if !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, want %+v", got, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := (&Message{Kind: Spawn, ID: 7, Path: "/bin/sh", Argv: []string{"sh"}, Env: []string{"A=1"}}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decode(b); (m == nil) == (err == nil) {
			t.Errorf("message %v with error %v", m, err)
		}
	})
}
