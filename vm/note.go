package vm

// Note journals what a call learned from the world although its results cannot be
// kept (a task's values pass by reference): whether a deadline passed, say. A replay
// gives what was noted then. It is called under the VM's lock, as often on every run.
func (c *Call) Note(v Value) (Value, error) {
	d := c.dispatch
	if d == nil || d.host.Journal == nil {
		return v, nil
	}
	c.Task.calls++
	entry := Entry{N: d.calls.Add(1), Task: c.Task.ID, K: c.Task.calls, Name: c.ns + "." + c.fn.Name, Result: []Value{v}}
	old, ok, err := d.host.Journal.Answer(entry.Task, entry.K, entry.Name)
	if err != nil {
		return nil, &Fault{Err: err}
	}
	if ok && len(old.Result) == 1 {
		return old.Result[0], nil
	}
	d.host.Journal.Record(entry)
	return v, nil
}
