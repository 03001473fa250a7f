package vm

// Note journals what a call learned from the world although its results cannot be
// kept (a task's values pass by reference): whether a deadline passed, say. A replay
// gives what was noted then. It is called by the call's own goroutine, as often on
// every run.
func (c *Call) Note(v Value) (Value, error) {
	if c.dispatch == nil || c.dispatch.host.Journal == nil {
		return v, nil
	}
	old, ok, err := c.noted()
	if err != nil || ok {
		return old, err
	}
	entry := c.note()
	entry.N, entry.Result = c.dispatch.calls.Add(1), []Value{v}
	c.dispatch.host.Journal.Record(entry)
	return v, nil
}

// Noted gives what the next Note will give, where that is known before: on a replay.
func (c *Call) Noted() (v Value, ok bool, err error) {
	if c.dispatch == nil || c.dispatch.replay == nil {
		return nil, false, nil
	}
	v, ok, err = c.noted()
	c.Task.calls-- // the Note follows
	c.notes--
	return v, ok, err
}

// noted takes the note's place among the task's calls.
func (c *Call) noted() (v Value, ok bool, err error) {
	c.Task.calls++
	c.notes++
	if c.dispatch.replay == nil {
		return nil, false, nil
	}
	old, ok, err := c.dispatch.replay.Answer(c.note())
	if err != nil {
		return nil, false, &Fault{Err: err}
	}
	if !ok || len(old.Result) != 1 {
		return nil, false, nil
	}
	return old.Result[0], true, nil
}

func (c *Call) note() Entry {
	return Entry{Task: c.Task.ID, K: c.Task.calls, Name: c.ns + "." + c.fn.Name, Again: true}
}
