package fakeengine

import (
	"cmp"
	"math/rand/v2"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// piece is one token of an answer: some reasoning, some text, or a part of a tool call.
type piece struct {
	reasoning, text string
	call            *callPiece
}

// callPiece is a part of a tool call. The first part of a call has its id and name.
type callPiece struct {
	index     int
	id, name  string
	arguments string
}

// plan is the whole text to generate, and how it ends.
type plan struct {
	pieces     []piece
	finish     string // finish_reason
	stopType   string // eos, word or limit
	stopString string
}

// newPlan splits an answer into tokens, and ends it early if the request limits it.
func newPlan(k kind, a *ask, r *Rule) plan {
	answer := a.begun.rest(r.Choose(a.rounds))
	p := plan{finish: "stop", stopType: "eos"}
	texts := answer.Texts()
	if !r.IgnoreLimits {
		texts, p.stopString = cutAtStop(texts, a.stops)
	}
	if k == chat && a.thinking {
		for _, w := range fakekit.Words(answer.Reasoning) {
			p.pieces = append(p.pieces, piece{reasoning: w})
		}
	}
	for _, t := range texts {
		p.pieces = append(p.pieces, piece{text: t})
	}
	switch {
	case p.stopString != "":
		p.stopType = "word"
	case k == chat && len(answer.Calls) > 0:
		p.finish = "tool_calls"
		for i := range answer.Calls {
			p.pieces = append(p.pieces, callPieces(&answer.Calls[i], i)...)
		}
	}
	if !r.IgnoreLimits && a.limit > 0 && len(p.pieces) > a.limit {
		p.pieces = p.pieces[:a.limit]
		p.finish, p.stopType, p.stopString = "length", "limit", ""
	}
	p.finish = cmp.Or(answer.Finish, p.finish)
	return p
}

// cutAtStop ends the text before the first stop string in it.
func cutAtStop(pieces, stops []string) (kept []string, stop string) {
	text := strings.Join(pieces, "")
	end := len(text)
	for _, s := range stops {
		if at := strings.Index(text, s); at >= 0 && at < end {
			end, stop = at, s
		}
	}
	if stop == "" {
		return pieces, ""
	}
	for _, p := range pieces {
		if len(p) >= end {
			if end > 0 {
				kept = append(kept, p[:end])
			}
			break
		}
		kept = append(kept, p)
		end -= len(p)
	}
	return kept, stop
}

// argumentPiece is the length of a fragment of arguments, in bytes, which is about a token.
const argumentPiece = 4

func callPieces(c *ToolCall, index int) []piece {
	first := &callPiece{index: index, id: cmp.Or(c.ID, randomID()), name: c.Name}
	rest := c.Arguments
	if rest != "" {
		first.arguments, rest = rest[:1], rest[1:] // the opening brace comes with the name
	}
	all := []piece{{call: first}}
	for rest != "" {
		end := min(argumentPiece, len(rest))
		for end < len(rest) && rest[end]&0xC0 == 0x80 { // not within a character
			end++
		}
		all = append(all, piece{call: &callPiece{index: index, arguments: rest[:end]}})
		rest = rest[end:]
	}
	return all
}

// randomID returns 32 letters and digits, like the real server's ids.
func randomID() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	id := make([]byte, 32)
	for i := range id {
		id[i] = letters[rand.IntN(len(letters))]
	}
	return string(id)
}
