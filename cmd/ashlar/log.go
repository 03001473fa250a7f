package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/stdlib/knl"
)

// logFlags are the flags that every verb of log takes.
type logFlags struct {
	store string
	json  bool
}

func newLog(p *process) *cobra.Command {
	var f logFlags
	c := &cobra.Command{
		Use: "log", Short: "Read the event log, and look after it",
		Example: "  ashlar log sessions\n  ashlar log show SESSION\n  ashlar log export SESSION --as messages",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown verb \"log %s\"; there are sessions, show, export, query, tail, verify, backup, rm, prune and import", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&f.store, "store", "", "sqlite:PATH (default ASHLAR_STORE, then $ASHLAR_HOME/kernel.db)")
	c.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
	c.AddCommand(newLogSessions(p, &f), newLogShow(p, &f), newLogExport(p, &f), newLogQuery(p, &f), newLogTail(p, &f), newLogBackup(p, &f), newLogVerify(p, &f),
		newLogRm(p, &f), newLogPrune(p, &f), newLogImport(p, &f))
	return c
}

func (p *process) log(c *cobra.Command, f *logFlags) (*ashlar.Workspace, *ashlar.Log, error) {
	ws, err := p.open(c, ashlar.Options{Store: f.store})
	if err != nil {
		return nil, nil, err
	}
	l, err := ws.Log(c.Context())
	if err != nil {
		ws.Close()
		return nil, nil, err
	}
	return ws, l, nil
}

func newLogSessions(p *process, f *logFlags) *cobra.Command {
	var after, project string
	var limit int
	var given []string
	c := &cobra.Command{
		Use: "sessions", Short: "List sessions, the newest last, with their heads",
		Example: "  ashlar log sessions --label job=nightly --limit 20",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			want, err := labels(given, nil)
			if err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit must be at least 1, got %d", limit)
			}
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			if project != "" {
				other, err := p.open(c, ashlar.Options{Project: project})
				if err != nil {
					return err
				}
				project = other.Project()
			}
			list, next, err := l.Sessions(c.Context(), after, limit, want, project)
			if errors.Is(err, kernel.NotFound) {
				return usagef("--after: %s", kernel.Message(err))
			}
			if err != nil {
				return err
			}
			for _, s := range list {
				if err := printSession(p.stdout, s, f.json); err != nil {
					return err
				}
			}
			if next != "" && !f.json {
				fmt.Fprintf(p.stderr, "more: --after %s\n", next)
			}
			return nil
		},
	}
	c.Flags().StringVar(&after, "after", "", "go on after this `ID`, the last one printed")
	c.Flags().IntVar(&limit, "limit", 1000, "at most `N`")
	c.Flags().StringArrayVar(&given, "label", nil, "only sessions with this label `K=V`; may be repeated")
	c.Flags().StringVar(&project, "project", "", "only sessions of runs in this `DIR`")
	return c
}

func printSession(w io.Writer, s ashlar.SessionInfo, asJSON bool) error {
	if asJSON {
		m := map[string]any{
			"session": s.ID, "head_seq": s.Events, "head": s.Head, "owner": s.Owner, "run": s.Run, "project": s.Project,
			"block": s.Block, "labels": s.Labels, "opened_epoch_ms": s.OpenedMS, "closed": nil,
		}
		if s.Parent != "" {
			m["parent"] = s.Parent
		}
		if s.Closed != "" {
			m["closed"] = s.Closed
		}
		return writeJSON(w, m)
	}
	state := "open"
	if s.Closed != "" {
		state = oneLine(s.Closed)
	}
	_, err := fmt.Fprintf(w, "%s  %s  %-10s  %4d events  %-12s %s  head %d:%s\n", s.ID,
		time.UnixMilli(s.OpenedMS).Format("2006-01-02 15:04:05"), state, s.Events, oneLine(s.Owner), oneLine(s.Block), s.Events, s.Head)
	return err
}

func newLogShow(p *process, f *logFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show SESSION", Short: "Print a session, readable",
		Example: "  ashlar log show 1f0c5a52-…",
		Args:    oneArg("a session's id"),
		RunE: func(c *cobra.Command, args []string) error {
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			out := bufio.NewWriter(p.stdout)
			err = l.Events(c.Context(), args[0], true, func(e event.Event) error {
				if f.json {
					return exportEvent(out, e)
				}
				return showEvent(out, e)
			})
			if err != nil {
				return err
			}
			return out.Flush()
		},
	}
}

// showEvent prints one event on a line, long texts cut.
func showEvent(w io.Writer, e event.Event) error {
	data, err := logjson.Object(e.Data)
	if err != nil {
		return kernel.Errorf("log", kernel.Corruption, "event %d: %w", e.Seq, err)
	}
	_, err = fmt.Fprintf(w, "%5d  %s  %-16s %s\n", e.Seq, e.Time().Format("15:04:05.000"), oneLine(e.Kind), summary(e.Kind, data))
	return err
}

func summary(kind string, data map[string]any) string {
	switch kind {
	case event.LLMRequest:
		r, _ := data["request"].(map[string]any)
		messages, _ := r["messages"].([]any)
		tools, _ := r["tools"].([]any)
		return fmt.Sprintf("%d messages, %d tools", len(messages), len(tools))
	case event.MsgUser:
		return short(data["content"])
	case event.LLMResponse:
		return short(data["content"])
	}
	keys := make([]string, 0, len(data))
	for k := range data {
		if k != "scope_id" {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	var parts []string
	for _, k := range keys {
		parts = append(parts, oneLine(k)+"="+short(data[k]))
	}
	return strings.Join(parts, " ")
}

// short is a value on one line of at most 120 characters.
func short(v any) string {
	s, ok := v.(string)
	if !ok {
		b, err := logjson.Marshal(v)
		if err != nil {
			return "?"
		}
		s = string(b)
	}
	s = oneLine(s)
	if r := []rune(s); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return s
}

func newLogExport(p *process, f *logFlags) *cobra.Command {
	var as, runID string
	c := &cobra.Command{
		Use: "export [SESSION]", Short: "Print a session as JSON Lines: its events, or its messages",
		Long: `Print a session as JSON Lines. --as events gives every event as it was stored;
--as messages the conversation alone, one record for each event of it, with role,
content, kind, seq and, of a beat, its id. A record is for reading and for programs
that follow a run: it is not a message of a provider's request. A call stands in it
twice, in the llm_response that asked for it and as the tool_call that ran, and the
content of tool_call and tool_result is one block, not a list.`,
		Example: "  ashlar log export SESSION --as messages\n  ashlar log export --run RUN",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (runID != "") {
				return usagef("log export takes a session's id, or --run RUN")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if as != "events" && as != "messages" {
				return usagef("--as is events or messages, not %q", as)
			}
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			streams := args
			if runID != "" {
				row, err := l.Run(c.Context(), runID)
				if err != nil {
					return err
				}
				streams = append([]string{row.Stream()}, row.Sessions...)
			}
			out, told := bufio.NewWriter(p.stdout), map[event.Hash]bool{}
			for _, s := range streams {
				err := l.Events(c.Context(), s, as == "events", func(e event.Event) error {
					if err := export(out, e, as, runID != ""); err != nil || as != "events" || runID == "" {
						return err
					}
					return l.Contents(c.Context(), e, func(h event.Hash, body []byte) error {
						if told[h] {
							return nil
						}
						told[h] = true
						return exportContent(out, h, body)
					})
				})
				if err != nil {
					return err
				}
			}
			return out.Flush()
		},
	}
	c.Flags().StringVar(&as, "as", "events", "events, or messages: records, not a request's messages")
	c.Flags().StringVar(&runID, "run", "", "everything of a `RUN`: its own stream, then its sessions, with the content that they name; log import reads it")
	return c
}

func export(w io.Writer, e event.Event, as string, named bool) error {
	if as == "events" {
		if named {
			return exportNamed(w, e)
		}
		return exportEvent(w, e)
	}
	r, ok, err := knl.Record(e)
	if err != nil || !ok {
		return err
	}
	return writeJSON(w, r)
}

// exportEvent prints the stored object, its bodies as they were appended.
func exportEvent(w io.Writer, e event.Event) error { return writeJSON(w, eventObject(e)) }

// exportNamed also says which stream it is of, and its place in the chain.
func exportNamed(w io.Writer, e event.Event) error {
	m := eventObject(e)
	m["stream"], m["hash"] = e.Stream, hex.EncodeToString(e.Hash[:])
	return writeJSON(w, m)
}

func eventObject(e event.Event) map[string]any {
	return map[string]any{
		"seq": e.Seq, "epoch_ms": e.EpochMS, "kind": e.Kind, "_schema_version": int64(e.SchemaVersion),
		"meta": logjson.Raw(e.Meta), "data": logjson.Raw(e.Data),
	}
}

func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s takes %s", c.CommandPath(), what)
		}
		return nil
	}
}
