//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/proc"
)

// Lonis 14: a bad directory was blamed on the command, and a relative path was
// looked up in the host's directory but executed in the command's.
func TestAMistakeIsNamedForWhatItIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "text", 0o600)
	write("orphan", "#!/no/such/interpreter\n", 0o700)
	write("binary", "\x00\x01\x02", 0o700)
	for _, c := range []struct {
		argv []string
		dir  string
		env  []string
		kind kernel.Kind
		says string
	}{
		{[]string{"no-such-command"}, dir, nil, kernel.NotFound, "no-such-command"},
		{[]string{"./no-such-command"}, dir, nil, kernel.NotFound, "./no-such-command"},
		{[]string{"/no/such/command"}, dir, nil, kernel.NotFound, "/no/such/command"},
		{[]string{"sh"}, dir, []string{"PATH=/no/such/dir"}, kernel.NotFound, "/no/such/dir"},
		{[]string{"true"}, "/no/such/dir", nil, kernel.NotFound, "directory /no/such/dir"},
		{[]string{"true"}, dir + "/plain", nil, kernel.Validation, "not a directory"},
		{[]string{"true"}, "relative", nil, kernel.Validation, "not absolute"},
		{[]string{"true"}, "", nil, kernel.Validation, "working directory"},
		{[]string{"./plain"}, dir, nil, kernel.Permission, "./plain"},
		{[]string{"plain"}, dir, []string{"PATH=."}, kernel.Permission, "plain"},
		{[]string{dir}, dir, nil, kernel.Permission, dir},
		{[]string{"./orphan"}, dir, nil, kernel.NotFound, "interpreter"},
		{[]string{"./binary"}, dir, nil, kernel.Validation, "neither a program"},
		{nil, dir, nil, kernel.Validation, "no command"},
		{[]string{"true", "a\x00b"}, dir, nil, kernel.Validation, "NUL"},
		{[]string{"true"}, dir, []string{"nonsense"}, kernel.Validation, "NAME=value"},
		{[]string{"true", strings.Repeat("x", 200<<10)}, dir, nil, kernel.Limit, "longer than"},
		{[]string{"true", strings.Repeat("x", 9<<20)}, dir, nil, kernel.Limit, "longer than"},
	} {
		_, err := s.Run(context.Background(), proc.Spec{Argv: c.argv, Dir: c.dir, Env: c.env})
		if kernel.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.says) {
			argv := strings.Join(c.argv, " ")
			t.Errorf("%.40q in %q: %v, want %s with %q", argv, c.dir, err, c.kind, c.says)
		}
	}
}

func TestACommandIsLookedUpAsItWouldItself(t *testing.T) {
	t.Parallel()
	s := start(t)
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/bin", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/bin/tool", []byte("#!/bin/sh\necho tool in $PWD as $0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  []string
	}{
		{"bin/tool", nil},
		{"./bin/tool", nil},
		{dir + "/bin/tool", nil},
		{"tool", []string{"PATH=/nowhere:bin"}},
		{"tool", []string{"PATH=" + dir + "/bin"}},
	} {
		r, err := s.Run(context.Background(), proc.Spec{Argv: []string{c.name}, Dir: dir, Env: c.env})
		if err != nil || !strings.HasPrefix(string(r.Stdout), "tool in "+dir) {
			t.Errorf("%q with %q: %q %v", c.name, c.env, r.Stdout, err)
		}
	}
}

func TestACommandInheritsOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	got := proc.Environment{
		Parent: []string{"PATH=/bin", "PATH=/later", "HOME=/h", "LC_ALL=C", "LC_TOKEN=no", "https_proxy=p", "NO_PROXY=n",
			"ASHLAR_HOME=/a", "ASHLAR_API_KEY=no", "OPENAI_API_KEY=no", "EDITOR=no", "GITHUB_TOKEN=yes", "TERM=dumb", "=odd", "odd"},
		Pass: []string{"GITHUB_TOKEN", "ABSENT"},
		Set:  map[string]string{"TERM": "xterm", "MY_SECRET": "given"},
	}.List()
	want := []string{"ASHLAR_HOME=/a", "GITHUB_TOKEN=yes", "HOME=/h", "LC_ALL=C", "MY_SECRET=given", "NO_PROXY=n",
		"PATH=/bin", "TERM=xterm", "https_proxy=p"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
