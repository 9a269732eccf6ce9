package translate

// StopReason says why generation ended, in the words of the v0 API.
type StopReason string

// All of them.
const (
	StopEOS       StopReason = "eosFound"
	StopString    StopReason = "stopStringFound"
	StopToolCalls StopReason = "toolCalls"
	StopMaxTokens StopReason = "maxPredictedTokensReached"
	StopContext   StopReason = "contextLengthReached"
	StopUser      StopReason = "userStopped"
	StopUnloaded  StopReason = "modelUnloaded"
	StopFailed    StopReason = "failed"
)

// Stop says more exactly than the Finish that follows it why generation ended.
type Stop struct {
	Reason StopReason
	Text   string // with StopString: which of the strings was met
}

func (Stop) event() {}
