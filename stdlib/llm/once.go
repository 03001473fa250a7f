package llm

import "sync"

// onces remembers what was said last of each of some names. The zero value is ready.
type onces struct {
	mu   sync.Mutex
	last map[string]string
}

// changes reports whether something else was said of a name than the last time.
func (o *onces) changes(name, said string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]string{}
	}
	if o.last[name] == said {
		return false
	}
	o.last[name] = said
	return true
}
