package proc

import (
	"maps"
	"slices"
	"strings"

	"ashlar/kernel/redact"
)

// Environment says what a command may see of the environment around it.
type Environment struct {
	// Parent is where inherited variables come from, "NAME=value"; of two entries for
	// one name the first counts, as in os.Getenv.
	Parent []string
	// Pass names further variables of Parent to hand on. This is the only way for a
	// variable that is named like a credential.
	Pass []string
	// Set adds variables and replaces inherited ones.
	Set map[string]string
}

// Inherited lists the variables that every command inherits, besides LC_*.
// Proxies are inherited in lower case too.
func Inherited() []string {
	return []string{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "TZ",
		"ASHLAR_HOME", "ASHLAR_TRACE_ID", "ASHLAR_PARENT_RUN",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"}
}

// List gives the environment, sorted, each name once: the allow-list of
// Inherited, what Pass names, and Set. Everything else is withheld, so a
// credential that nobody named reaches no command.
func (e Environment) List() []string {
	values := make(map[string]string)
	for _, entry := range e.Parent {
		name, value, found := strings.Cut(entry, "=")
		if _, have := values[name]; !found || name == "" || have {
			continue
		}
		if slices.Contains(e.Pass, name) || inherits(name) {
			values[name] = value
		}
	}
	maps.Copy(values, e.Set)
	list := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+values[name])
	}
	return list
}

func inherits(name string) bool {
	if redact.CredentialName(name) {
		return false
	}
	if strings.HasPrefix(name, "LC_") {
		return true
	}
	if strings.HasSuffix(name, "_proxy") {
		name = strings.ToUpper(name)
	}
	return slices.Contains(Inherited(), name)
}
