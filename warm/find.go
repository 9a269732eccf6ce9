package warm

import "github.com/lmcaddy/lmcaddy/internal/prefix"

// common estimates how many tokens of a state are of use for a prompt. The answer isn't counted, since the client may send
// it otherwise than the engine made it.
func (e *entry) common(prompt prefix.Chain) int {
	n := e.prompt.Common(prompt)
	if n == len(e.prompt) {
		return e.record.PromptTokens
	}
	whole := e.prompt.Weight(len(e.prompt))
	if whole == 0 {
		return 0
	}
	return int(int64(e.record.PromptTokens) * int64(e.prompt.Weight(n)) / int64(whole))
}

// isBetter reports whether e is preferred to a state that has equally many tokens in common with a prompt: its whole prompt is
// of use, or it is smaller, or was used later.
func (e *entry) isBetter(o *entry, common int) bool {
	if whole := e.record.PromptTokens == common; whole != (o.record.PromptTokens == common) {
		return whole
	}
	if e.record.Bytes != o.record.Bytes {
		return e.record.Bytes < o.record.Bytes
	}
	return e.record.Used.After(o.record.Used)
}
