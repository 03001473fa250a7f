package llm

import (
	"net/url"
	"path"
	"strings"
)

// below reports whether a path leads to a place below the base URL, and not to another
// host: a call takes the key along.
func below(p string) bool {
	u, err := url.Parse(p)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || strings.HasPrefix(p, "/") || strings.Contains(p, "\\") {
		return false
	}
	clean := path.Clean(u.Path)
	return clean != ".." && !strings.HasPrefix(clean, "../")
}
