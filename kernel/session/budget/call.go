package budget

// Call is what a model call has reserved, as far as tokens or cost are bounded.
type Call struct {
	Bytes  int   // of the request that was reserved for
	Input  int64 // tokens of it, at most
	Reply  int64 // tokens of its reply, at most
	Cost   int64 // micro-USD of both
	Priced bool  // Cost is bounded
}
