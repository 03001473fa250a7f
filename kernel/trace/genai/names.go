package genai

// Conventions names the version that the names below are of:
// open-telemetry/semantic-conventions-genai, all of it "Development".
const Conventions = "v0.1.0"

// Scope is who makes the spans.
const Scope = "ashlar"

// Operations: the value of gen_ai.operation.name and the first word of a span's name.
const (
	invokeAgent = "invoke_agent"
	chat        = "chat"
	executeTool = "execute_tool"
)

// Attributes of the conventions.
const (
	operationName     = "gen_ai.operation.name"
	providerName      = "gen_ai.provider.name"
	agentID           = "gen_ai.agent.id"
	agentName         = "gen_ai.agent.name"
	conversationID    = "gen_ai.conversation.id"
	requestModel      = "gen_ai.request.model"
	inputTokens       = "gen_ai.usage.input_tokens" // cached ones among them
	outputTokens      = "gen_ai.usage.output_tokens"
	cacheReadTokens   = "gen_ai.usage.cache_read.input_tokens"
	cacheCreateTokens = "gen_ai.usage.cache_creation.input_tokens"
	reasoningTokens   = "gen_ai.usage.reasoning.output_tokens" // of the output
	toolName          = "gen_ai.tool.name"
	toolType          = "gen_ai.tool.type"
	toolCallID        = "gen_ai.tool.call.id"
	errorType         = "error.type"
	serviceName       = "service.name"
	serviceVersion    = "service.version"
)

// Attributes of our own.
const (
	runID          = "ashlar.run.id"
	runStatus      = "ashlar.run.status"
	runStopped     = "ashlar.run.stopped_by"
	runTrace       = "ashlar.trace_id" // where it has not the form of a span's
	block          = "ashlar.block"
	beatID         = "ashlar.beat.id"
	usageCost      = "ashlar.usage.cost_micro_usd"
	usageEstimated = "ashlar.usage.estimated"
	conventions    = "ashlar.genai.conventions"
)

// functionTool is the type of every tool here: it runs on the agent's side.
const functionTool = "function"

// Values of error.type that no kind of a fact gives.
const (
	otherError = "_OTHER"     // by the conventions
	unfinished = "unfinished" // the run ended first
)

// Provider gives the conventions' name of a provider of ours; one that they do not know
// has its own.
func Provider(name string) string {
	if known, ok := map[string]string{"gemini": "gcp.gemini", "azure": "azure.ai.openai", "mistral": "mistral_ai", "xai": "x_ai"}[name]; ok {
		return known
	}
	return name
}
