package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// querier gives a store with two short streams, a and b, that answers queries.
func querier(t *testing.T, sub Subject) store.Querier {
	t.Helper()
	s := sub.Open(t, Options{Now: clock()})
	q, ok := s.(store.Querier)
	if !ok {
		t.Fatal("the store answers no queries")
	}
	appendOne(t, s, "a", event.MsgUser, map[string]any{"content": "hello", "n": int64(7)})
	appendOne(t, s, "a", "note", map[string]any{"text": text(3000, "long")})
	appendOne(t, s, "a", event.LLMRequest, conversation(3, "t"))
	appendOne(t, s, "b", event.MsgUser, map[string]any{"content": "other"})
	return q
}

func answer(a store.Answer) string {
	var b strings.Builder
	b.WriteString(strings.Join(a.Columns, ","))
	for _, r := range a.Rows {
		b.WriteString("|")
		for i, v := range r {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprint(&b, v)
		}
	}
	if a.Truncated {
		b.WriteString("|…")
	}
	return b.String()
}

func queries(t *testing.T, sub Subject) {
	q := querier(t, sub)
	named := map[string]any{"k": "msg_user", "n": int64(1)}
	for _, c := range []struct {
		sql  string
		ask  store.Question
		want string
	}{
		{"SELECT seq, kind FROM events WHERE stream = $stream ORDER BY seq", store.Question{}, "seq,kind|1,msg_user|2,note|3,llm_request"},
		{"SELECT seq FROM events WHERE stream = $stream; -- done", store.Question{Limit: 2}, "seq|1|2|…"},
		{"\n/* first */ WITH e AS (SELECT * FROM events) SELECT count(*) AS n FROM e ; \n /* open", store.Question{}, "n|4"},
		{"SELECT count(*) AS n FROM events WHERE stream IN $sessions", store.Question{}, "n|4"},
		{"SELECT count(*) AS n FROM events WHERE stream IN ( $sessions )", store.Question{}, "n|4"},
		{"SELECT count(*) AS n FROM events WHERE stream NOT IN /* x */ $sessions", store.Question{Sessions: []string{"b"}}, "n|3"},
		{"SELECT s.value AS v FROM json_each($sessions) AS s ORDER BY 1", store.Question{}, "v|a|b"},
		{"SELECT json_extract(data, '$.content') AS c, json_extract(data, '$.n') AS n FROM events WHERE kind = ? AND seq = ? ORDER BY position",
			store.Question{Params: []any{"msg_user", 1}}, "c,n|hello,7|other,<nil>"},
		{"SELECT stream FROM events WHERE kind = :k AND seq = @n AND :k = :k AND stream = $stream", store.Question{Named: named}, "stream|a"},
		{"SELECT length(json_extract(data, '$.text')) > 2999 AS whole FROM events WHERE kind = 'note'", store.Question{}, "whole|1"},
		{"SELECT json_array_length(data, '$.request.messages') AS n FROM events WHERE kind = 'llm_request'", store.Question{}, "n|3"},
		{"SELECT ';' AS [a;b], \"kind\" AS k FROM events WHERE '--' <> ';' LIMIT 1", store.Question{}, "a;b,k|;,msg_user"},
		{"SELECT ?, 1 AS one", store.Question{Params: []any{nil}}, "?,one|<nil>,1"},
		{"SELECT 1.5 AS f, 9223372036854775807 AS big, true AS b", store.Question{}, "f,big,b|1.5,9223372036854775807,1"},
		{"SELECT e.seq AS x, f.seq AS y FROM events e JOIN events f ON f.position = e.position + 1 WHERE e.seq = 1", store.Question{}, "x,y|1,2"},
		{"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) AS s, count(*) AS c FROM n", store.Question{}, "s,c|6,3"},
		{"SELECT row_number() OVER (ORDER BY position) AS r FROM events LIMIT 2", store.Question{}, "r|1|2"},
		{"SELECT 'AbC' LIKE 'a_c' AS a, 'x%y' LIKE 'x!%y' ESCAPE '!' AS b, 'héé' LIKE 'h__' AS c, 'abc' GLOB 'a[^x-z]*' AS d, 'abc' GLOB 'A*' AS e, '' LIKE '%' AS f",
			store.Question{}, "a,b,c,d,e,f|1,1,1,1,0,1"},
		{"SELECT instr('héllo', 'llo') AS a, replace('aXbX', 'X', '--') AS b, trim('  x ') AS c, ltrim('xxy', 'x') AS d, rtrim('yxx', 'x') AS e, instr('a', NULL) AS f, replace(12, 2, 3) AS g",
			store.Question{}, "a,b,c,d,e,f,g|3,a--b--,x,y,y,<nil>,13"},
	} {
		c.ask.SQL, c.ask.Stream = c.sql, "a"
		if c.ask.Sessions == nil {
			c.ask.Sessions = []string{"a", "b"}
		}
		a, err := q.Ask(context.Background(), c.ask)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
		} else if got := answer(a); got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}

func refusedQueries(t *testing.T, sub Subject) {
	q := querier(t, sub)
	for _, c := range []struct {
		sql  string
		ask  store.Question
		kind kernel.Kind
		say  string
	}{
		{"", store.Question{}, kernel.Validation, "no statement"},
		{"-- nothing", store.Question{}, kernel.Validation, "no statement"},
		{"SELECT 1; SELECT 2", store.Question{}, kernel.Validation, "one statement"},
		{"SELECT 1;;", store.Question{}, kernel.Validation, "one statement"},
		{"SELECT 1\x00; DROP TABLE event", store.Question{}, kernel.Validation, "NUL"},
		{"DELETE FROM event", store.Question{}, kernel.Validation, "begins with SELECT or WITH"},
		{"EXPLAIN SELECT 1", store.Question{}, kernel.Validation, "begins with SELECT or WITH"},
		{"PRAGMA query_only = 0", store.Question{}, kernel.Validation, "begins with"},
		{"ATTACH '/etc/passwd' AS x", store.Question{}, kernel.Validation, "begins with"},
		{"WITH x AS (SELECT 1) DELETE FROM event", store.Question{}, kernel.Validation, "only reads"},
		{"WITH x AS (SELECT 1) INSERT INTO projection SELECT 1, 2, 3", store.Question{}, kernel.Validation, "only reads"},
		{"WITH x AS (SELECT 1) UPDATE event SET kind = 'x'", store.Question{}, kernel.Validation, "only reads"},
		{"SELECT * FROM projection", store.Question{}, kernel.Validation, "what is published is the view events"},
		{"SELECT count(*) FROM projection", store.Question{}, kernel.Validation, "published"},
		{"SELECT * FROM sqlite_schema", store.Question{}, kernel.Validation, "published"},
		{"SELECT * FROM content", store.Question{}, kernel.Validation, "published"},
		{"SELECT count(*) FROM sqlite_dbpage", store.Question{}, kernel.Validation, "published"},
		{"SELECT * FROM pragma_database_list", store.Question{}, kernel.Validation, "published"},
		{"SELECT load_extension('x')", store.Question{}, kernel.Validation, ""},
		{"SELECT json_patch('{}', '{}')", store.Question{}, kernel.Validation, "no function json_patch"},
		{"SELECT nosuch FROM events", store.Question{}, kernel.Validation, "sql: no such column: nosuch"},
		{"SELECT FROM", store.Question{}, kernel.Validation, "sql: "},
		{"SELECT seq, seq FROM events", store.Question{}, kernel.Validation, `two columns are named "seq"`},
		{"SELECT * FROM events a JOIN events b", store.Question{}, kernel.Validation, `two columns are named "position"`},
		{"SELECT ?1", store.Question{Params: []any{1}}, kernel.Validation, "write ?"},
		{"SELECT ?", store.Question{}, kernel.Validation, "1 ? parameter, and 0 given"},
		{"SELECT ?", store.Question{Params: []any{1, 2}}, kernel.Validation, "and 2 given"},
		{"SELECT :a", store.Question{}, kernel.Validation, "no value for :a"},
		{"SELECT :a", store.Question{Named: map[string]any{"a": 1, "b": 2}}, kernel.Validation, `"b" is given and not used`},
		{"SELECT :a, @a", store.Question{Named: map[string]any{"a": 1}}, kernel.Validation, "two different signs"},
		{"SELECT ?, :a", store.Question{Params: []any{1}, Named: map[string]any{"a": 1}}, kernel.Validation, "not both"},
		{"SELECT ?", store.Question{Params: []any{[]any{}}}, kernel.Validation, "a list or an object"},
		{"SELECT x'00' AS b", store.Question{}, kernel.Unsupported, "blob"},
		{"SELECT 9e999 AS b", store.Question{}, kernel.Unsupported, "not finite"},
		{"SELECT CAST(x'ff' AS TEXT) AS b", store.Question{}, kernel.Unsupported, "UTF-8"},
		{"SELECT printf('%.*c', 20000000, 'x') AS b", store.Question{}, kernel.Limit, "16777216"},
		{"SELECT 1", store.Question{Limit: store.MaxQueryRows + 1}, kernel.Validation, "limit is"},
		{"SELECT 1", store.Question{Timeout: -1}, kernel.Validation, "timeout_ms is"},
		{"SELECT '" + text(store.MaxQuerySQL, "x") + "'", store.Question{}, kernel.Validation, "at most 65536"},
	} {
		c.ask.SQL, c.ask.Stream, c.ask.Sessions = c.sql, "a", []string{"a"}
		a, err := q.Ask(context.Background(), c.ask)
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.say) {
			t.Errorf("%.80q: %v (%v), want %s: %s", c.sql, err, answer(a), c.kind, c.say)
		}
	}
}

// Each of these would run for minutes, hours or for ever.
func runawayQueries(t *testing.T, sub Subject) {
	q := querier(t, sub)
	big := "printf('%.*c', 16000000, 'a')"
	for name, sql := range map[string]string{
		"recursion":  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
		"late row":   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i = 1 OR i < 0",
		"cross join": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) SELECT count(*) FROM n a, n b, n c, n d",
		"instr":      "SELECT instr(" + big + ", printf('%.*c', 8000000, 'a') || 'b')",
		"like":       "SELECT " + big + " LIKE '%' || printf('%.*c', 9000, 'a') || 'b%'",
		"trim":       "SELECT trim(" + big + ", printf('%.*c', 8000000, 'b') || 'a')",
		"bombs":      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(length(" + big + " || '')) FROM n",
		"sort":       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY -i",
		"gather":     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT length(json_group_array(printf('%.*c', 100000, 'x'))) FROM n",
		"doubling":   doubling(40),
	} {
		start := time.Now()
		_, err := q.Ask(context.Background(), store.Question{SQL: sql, Stream: "a", Timeout: 200 * time.Millisecond})
		took := time.Since(start)
		if err == nil && name != "instr" && name != "trim" {
			t.Errorf("%s: no error", name)
		}
		if err != nil && !errors.Is(err, kernel.Timeout) && !errors.Is(err, kernel.Validation) && !errors.Is(err, kernel.Limit) {
			t.Errorf("%s: %v", name, err)
		}
		if took > 5*time.Second {
			t.Errorf("%s: ended after %v", name, took)
		}
		t.Logf("%-10s %v %.100v", name, took, err)
	}
}

// doubling is put together of itself n times.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("WITH c0 AS (SELECT 1 AS x)")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, ", c%d AS (SELECT a.x FROM c%d a, c%d b)", i, i-1, i-1)
	}
	fmt.Fprintf(&b, " SELECT count(*) FROM c%d", n)
	return b.String()
}
