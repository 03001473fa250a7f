package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"ashlar/kernel"
	"ashlar/kernel/store"
)

func newLogQuery(p *process, f *logFlags) *cobra.Command {
	var q store.Question
	c := &cobra.Command{
		Use: "query SQL", Short: "Answer one SELECT over the log's view `events`",
		Long: fmt.Sprintf(`Answer one SELECT (or WITH) over the view events, which has the columns
position, stream, seq, epoch_ms, kind, schema_version, meta, data and hash; meta and data
are whole JSON objects, for json_extract(data, '$.x'). IN $sessions stands for the
sessions named with --session, $stream for the first of them. Nothing can be written.
A row is a line; with --json an object. At most %d rows, %d bytes a value.`, store.MaxQueryRows, store.MaxQueryValue),
		Example: "  ashlar log query \"SELECT kind, count(*) AS n FROM events GROUP BY kind\"\n" +
			"  ashlar log query --session ID \"SELECT seq, kind FROM events WHERE stream = \\$stream\"",
		Args: oneArg("one SELECT, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			if q.Limit < 1 || q.Limit > store.MaxQueryRows {
				return usagef("--limit is 1 to %d, got %d", store.MaxQueryRows, q.Limit)
			}
			if q.Timeout < time.Millisecond || q.Timeout > store.MaxQueryTimeout {
				return usagef("--timeout is 1ms to %v, got %v", store.MaxQueryTimeout, q.Timeout)
			}
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			q.SQL = args[0]
			if len(q.Sessions) > 0 {
				q.Stream = q.Sessions[0]
			}
			ctx, stop := p.signals(c.Context())
			defer stop()
			a, err := l.Query(ctx, q)
			if errors.Is(err, kernel.Validation) {
				return usagef("%s", kernel.Message(err))
			}
			if err != nil {
				return signalled(ctx, err)
			}
			if err := printAnswer(p.stdout, a, f.json); err != nil {
				return err
			}
			if a.Truncated {
				fmt.Fprintf(p.stderr, "notice: there are more rows than %d; narrow the query, or raise --limit\n", len(a.Rows))
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&q.Sessions, "session", nil, "a session of $sessions; may be repeated, the first is $stream")
	c.Flags().IntVar(&q.Limit, "limit", store.QueryRows, "at most `N` rows")
	c.Flags().DurationVar(&q.Timeout, "timeout", store.QueryTimeout, "give up after `D`")
	return c
}

func printAnswer(w io.Writer, a store.Answer, asJSON bool) error {
	out := bufio.NewWriter(w)
	if asJSON {
		for _, r := range a.Rows {
			m := make(map[string]any, len(r))
			for i, v := range r {
				m[a.Columns[i]] = v
			}
			if err := writeJSON(out, m); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	table := [][]string{a.Columns}
	for _, r := range a.Rows {
		line := make([]string, len(r))
		for i, v := range r {
			line[i] = cell(v)
		}
		table = append(table, line)
	}
	widths := make([]int, len(a.Columns))
	for _, line := range table {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, line := range table {
		var b strings.Builder
		for i, text := range line {
			b.WriteString(oneLine(text))
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return out.Flush()
}

// cell is a value on one line, cut; null is an empty one.
func cell(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return short(v)
}
