package run

import (
	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
)

// Rebuilt is a row of the ledger as the events of the run's stream give it.
type Rebuilt struct {
	row  Row
	made bool
}

// Apply folds one event of the stream run:ID, in order.
func (r *Rebuilt) Apply(id string, e event.Event) error {
	data, err := logjson.Object(e.Data)
	if err != nil {
		return kernel.Errorf("run", kernel.Corruption, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
	}
	switch e.Kind {
	case event.RunQueued:
		if r.row, err = decode(e.Data); err != nil {
			return err
		}
		r.row.ID, r.row.State, r.row.CreatedMS, r.made = id, Queued, e.EpochMS, true
	case event.RunOwned:
		r.row.State, r.row.Approval = Running, ""
		r.row.Attempt, _ = data["attempt"].(int64)
		r.row.PID, _ = data["pid"].(int64)
	case event.RunWaiting:
		r.row.State = Waiting
		r.row.Approval, _ = data["approval"].(string)
	case event.RunSettled:
		state, _ := data["state"].(string)
		r.row.State = State(state)
		r.row.StoppedBy, _ = data["stopped_by"].(string)
		r.row.Error, _ = data["error"].(map[string]any)
		r.row.EndedMS, r.row.Settled = e.EpochMS, e.Seq
	}
	return nil
}

// Encode gives the row; nil for a stream that holds no run. Who owns a run is no event:
// it is what the present row says, or nobody.
func (r *Rebuilt) Encode(present []byte) ([]byte, error) {
	if !r.made {
		return nil, nil
	}
	if present != nil {
		if was, err := decode(present); err == nil {
			r.row.Owner = was.Owner
		}
	}
	return r.row.encode()
}
