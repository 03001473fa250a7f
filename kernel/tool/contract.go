package tool

import (
	"context"
	"sort"
	"sync"
	"time"
)

// Contract says what a tool is and does. The model sees name, description and
// input schema; authority and the bus read the rest.
type Contract struct {
	Name         string
	Description  string
	Input        map[string]any // JSON Schema of the arguments; nil accepts any object
	Group        string
	Capabilities []string
	ReadOnly     bool          // changes nothing: may run beside others of its kind
	Idempotent   bool          // running it twice is running it once
	Repeatable   bool          // is meant to be called again with the same arguments
	Timeout      time.Duration // of one call; 0: no bound but the run's
}

// Handler runs a tool with its arguments. What it returns is a neutral value (nil,
// bool, int64, float64, string, []any, map[string]any). Its error's message goes
// to the model.
type Handler func(ctx context.Context, args map[string]any) (any, error)

// Tool is a contract with the code that keeps it.
type Tool struct {
	Contract Contract
	Handler  Handler
}

// Registry holds the tools that a run offers by name. It is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]Tool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{tools: map[string]Tool{}} }

// Register adds a tool; one of that name is replaced.
func (r *Registry) Register(t Tool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tools[t.Contract.Name] = t
}

// Get finds a tool by name.
func (r *Registry) Get(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// List gives every tool, sorted by name: prompt caches key on the order.
func (r *Registry) List() []Tool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Tool, 0, len(r.tools))
	for _, t := range r.tools {
		list = append(list, t)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Contract.Name < list[j].Contract.Name })
	return list
}
