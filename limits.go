package ashlar

import (
	"time"

	"ashlar/kernel/proc"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/kernel/tool"
	"ashlar/stdlib/fs"
	httpmod "ashlar/stdlib/http"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/sh"
	"ashlar/vm"
)

// Limit is one named bound.
type Limit struct {
	Name  string
	Value int64
	Unit  string
	What  string
}

// MaxLogLine is where a script's log line is cut.
const MaxLogLine = 8 << 10

// Limits lists the bounds that hold for every run, with their units: what `ashlar
// api limits` prints. Each is a constant of the package that enforces it.
func Limits() []Limit {
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return []Limit{
		{"heap", vm.DefaultHeap, "bytes", "live memory of a script before its run ends"},
		{"string", vm.MaxStringBytes, "bytes", "one string made by a builtin"},
		{"source", vm.MaxSourceBytes, "bytes", "source of one chunk"},
		{"nesting", vm.MaxNesting, "levels", "brackets and blocks of source"},
		{"depth", vm.MaxDepth, "levels", "of a value that crosses to the host"},
		{"interrupt_grace", ms(vm.InterruptGrace), "ms", "from the interrupt of a script to its end"},
		{"page", store.MaxPage, "events", "one read of a session"},
		{"query_rows", store.MaxQueryRows, "rows", "of one query"},
		{"query_bytes", store.MaxQueryBytes, "bytes", "of all values of a query's answer"},
		{"query_value", store.MaxQueryValue, "bytes", "one value of a query, also on the way to its answer"},
		{"query_memory", store.MaxQueryMemory, "bytes", "by which the process may grow during one query, sampled"},
		{"query_columns", store.MaxQueryColumns, "columns", "of one SELECT"},
		{"query_sql", store.MaxQuerySQL, "bytes", "the text of a query"},
		{"query_time", ms(store.MaxQueryTimeout), "ms", "of one query; the default is 5000"},
		{"journal_entry", run.MaxJournalBytes, "bytes", "one syscall in the journal"},
		{"tool_result", tool.MaxModelBytes, "bytes", "one tool result as the model sees it"},
		{"file", fs.MaxFileBytes, "bytes", "a file read whole"},
		{"walk", fs.MaxWalkEntries, "files", "one std.fs.walk or glob"},
		{"sh_timeout", ms(sh.DefaultTimeout), "ms", "a command whose options name none"},
		{"sh_output", sh.MaxOutputBytes, "bytes", "each stream of a command whose options name none"},
		{"kill_grace", ms(2 * proc.DefaultGrace), "ms", "from SIGTERM to SIGKILL of sh.kill"},
		{"http_timeout", ms(httpmod.DefaultTimeout), "ms", "a request whose options name none"},
		{"http_body", httpmod.MaxBodyBytes, "bytes", "a reply of http.request"},
		{"llm_timeout", ms(llm.DefaultTimeout), "ms", "one attempt of a model call whose options name none"},
		{"llm_progress", ms(llm.DefaultProgress), "ms", "without data, for such a call"},
		{"llm_retries", llm.DefaultRetries, "attempts", "after the first, for such a call"},
		{"log_line", MaxLogLine, "bytes", "a line of log.info and its like"},
		{"stream_buffer", StreamBuffer, "lines", "the event stream before deltas are dropped"},
	}
}
