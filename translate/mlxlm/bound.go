package mlxlm

import (
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate/wire"
)

const (
	// templateTokens is more than templates add to a prompt: a system prompt of their own, and how tools are called.
	templateTokens = 1024
	// toolsGrow is by how much templates blow up the JSON of tools, which many indent.
	toolsGrow = 4
)

// Bounds returns the maximum number of tokens of the prompt, and the limit of generated tokens. A token has at least a byte, and a
// message of a request has more bytes beside its text than tokens beside it in the prompt.
func (Wire) Bounds(u wire.Upstream) (prompt, completion int) {
	prompt = len(u.Body[piecePrompt]) + toolsGrow*len(u.Body[pieceTools]) + templateTokens
	if n, err := strconv.Atoi(string(u.Body[pieceLimit])); err == nil && n != noLimit {
		completion = n - surplusOf(u)
	}
	return prompt, completion
}

// Counting returns a request for one token, whose answer has the usage. The server keeps the prompt for the next request. A seed
// would keep the request from being worked on beside others.
func (w Wire) Counting(u wire.Upstream) wire.Upstream {
	u = w.Limit(u, 1)
	u.Body[pieceSeed] = nil
	u.Counts = true
	return u
}

// Limit returns u with a limit of generated tokens.
func (Wire) Limit(u wire.Upstream, tokens int) wire.Upstream {
	u.Body = slices.Clone(u.Body)
	u.Body[pieceLimit] = limitOf(max(1, tokens) + surplusOf(u))
	return u
}
