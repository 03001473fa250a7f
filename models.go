package ashlar

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"ashlar/kernel"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/record"
)

// Bounds of asking a server for its models.
const (
	modelsTimeout = 2 * time.Second
	modelsBytes   = 1 << 20
)

// directory is what a run knows of providers: its flags, then the environment, then
// config.toml.
func (r *Run) directory(ctx context.Context, env *environment, player *record.Player) *llm.Directory {
	d := &llm.Directory{
		Providers: r.ws.Providers(),
		Run: llm.Ask{
			Model:   firstOf(r.task.Model, r.ws.environ["ASHLAR_MODEL"], r.ws.config.Run.Model),
			BaseURL: firstOf(r.task.BaseURL, r.ws.environ["ASHLAR_BASE_URL"]),
		},
		Env:    env.Get,
		Learn:  r.ws.redact.Add,
		Models: func(base string) (string, error) { return r.ws.firstModel(ctx, base) },
		Facts: func(provider, model string) llm.Window {
			m := r.ws.config.Model(provider, model)
			return llm.Window{Context: m.ContextWindow, MaxOutput: m.MaxOutput}
		},
	}
	if player != nil {
		provider, model := player.First()
		d.Replay = &llm.Ask{Provider: provider, Model: model}
	}
	return d
}

// firstModel asks a server for the models that it serves; nothing but the question
// is sent.
func (w *Workspace) firstModel(ctx context.Context, base string) (string, error) {
	const op = "llm.models"
	ctx, cancel := context.WithTimeout(ctx, modelsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return "", kernel.Errorf(op, kernel.Validation, "base URL %s is none", base)
	}
	res, err := w.opts.Client.Do(req)
	if err != nil {
		return "", kernel.Errorf(op, kernel.Network, "no answer")
	}
	defer res.Body.Close()
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, modelsBytes)).Decode(&list); err != nil || len(list.Data) == 0 {
		return "", kernel.Errorf(op, kernel.NotFound, "status %d without a list of models", res.StatusCode)
	}
	return list.Data[0].ID, nil
}
