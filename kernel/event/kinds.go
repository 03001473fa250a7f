package event

// The kinds that only the kernel writes.
const (
	SessionOpened  = "session_opened"
	SessionClosed  = "session_closed"
	BudgetGranted  = "budget_granted"
	BudgetReserved = "budget_reserved"
	BudgetRefused  = "budget_refused"
	BudgetSpent    = "budget_spent"
	BudgetSettled  = "budget_settled"

	RunQueued  = "run_queued"
	RunOwned   = "run_owned"
	RunSession = "run_session"
	RunWaiting = "run_waiting"
	RunSettled = "run_settled"
	Syscall    = "syscall"

	// In the stream Audit: what was taken out of the log, and why.
	SessionRemoved = "session_removed"
	RunRemoved     = "run_removed"
	Handover       = "handover"
)

// Kinds of a beat, which its author writes; the kernel reads some of them.
const (
	MsgUser       = "msg_user"
	LLMRequest    = "llm_request"
	LLMResponse   = "llm_response"
	LLMCallFailed = "llm_call_failed"
	LLMRetry      = "llm_retry"
	LLMFallback   = "llm_fallback" // without, status: a request that goes on without a field that was refused
	LLMDefaults   = "llm_defaults" // what a port filled in where nobody said it
	LLMPartial    = "llm_partial"  // content, reason: what had come of a reply that never was whole
	ToolCall      = "tool_call"
	ToolResult    = "tool_result"
)

// Audit is the stream of tombstones: nobody else writes it, and nothing removes it.
const Audit = "audit"

// KernelOnly reports whether only the kernel may write the kind.
func KernelOnly(kind string) bool {
	switch kind {
	case SessionOpened, SessionClosed,
		BudgetGranted, BudgetReserved, BudgetRefused, BudgetSpent, BudgetSettled,
		RunQueued, RunOwned, RunSession, RunWaiting, RunSettled, Syscall, Handover, SessionRemoved, RunRemoved:
		return true
	}
	return false
}

// Ledger reports whether the kind moves or refuses a budget.
func Ledger(kind string) bool {
	switch kind {
	case BudgetGranted, BudgetReserved, BudgetRefused, BudgetSpent, BudgetSettled:
		return true
	}
	return false
}
