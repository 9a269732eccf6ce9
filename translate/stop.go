package translate

// StopReason is why generation ended, more exactly than a [FinishReason].
type StopReason string

// The stop reasons.
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

// Stop reports why generation ended, more exactly than the Finish that follows it.
type Stop struct {
	Reason StopReason
	Text   string // the stop string that was found, with StopString
}

func (Stop) event() {}
