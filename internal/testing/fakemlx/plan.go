package fakemlx

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// token is one token of an answer: some thought, some text, or a part of a call, of which only the last has the call.
type token struct {
	thought, text string
	call          *fakekit.ToolCall
}

// plan is all that a script has generated, and how it ends.
type plan struct {
	tokens []token
	finish string
}

// callToken is the length of a token of a call, in bytes.
const callToken = 4

// newPlan splits an answer into tokens, and ends it early if the request limits it.
func newPlan(q *ask, r *fakekit.Rule, s *Script) plan {
	answer := r.Choose(q.rounds)
	p := plan{finish: "stop"}
	if q.chat && q.thinking {
		for _, w := range fakekit.Words(answer.Reasoning) {
			p.tokens = append(p.tokens, token{thought: w})
		}
	}
	texts, stopped := q.force(answer.Texts()), false
	if !r.IgnoreLimits {
		texts, stopped = cutAtStop(texts, stopWords(q.body["stop"]))
	}
	for _, t := range texts {
		p.tokens = append(p.tokens, token{text: t})
	}
	if q.chat && !stopped {
		for i := range answer.Calls {
			p.addCall(&answer.Calls[i], s.NoTools)
		}
	}
	if limit := max(1, q.limit); !r.IgnoreLimits && len(p.tokens) > limit {
		p.tokens = p.tokens[:limit]
		p.finish = "length"
	}
	p.finish = cmp.Or(answer.Finish, p.finish)
	return p
}

// forcing is the bias that leaves a model no choice.
const forcing = 100

// forced is the text of a token that a bias forces.
const forced = " c"

// force makes of a text what a bias leaves of it: one token, again and again, or but once, where the batch has lost the bias.
func (q *ask) force(texts []string) []string {
	for _, bias := range q.bias {
		if bias >= forcing && q.lost {
			return append([]string{forced}, texts...)
		}
		if bias >= forcing {
			return slices.Repeat([]string{forced}, max(1, q.limit)+1)
		}
	}
	return texts
}

// addCall adds a call: a few silent tokens, then the call as a whole.
func (p *plan) addCall(c *fakekit.ToolCall, asText bool) {
	if asText {
		p.tokens = append(p.tokens, token{text: `<tool_call>{"name": "` + c.Name + `", "arguments": ` + c.Arguments + "}</tool_call>"})
		return
	}
	silent := make([]token, len(c.Arguments)/callToken+1)
	p.tokens = append(append(p.tokens, silent...), token{call: c})
	p.finish = "tool_calls"
}

// words are the text of a plan, as it is known to the prompt cache.
func (p *plan) words() []string {
	var all []string
	for _, t := range p.tokens {
		all = append(all, t.thought+t.text)
	}
	return all
}

func stopWords(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, item := range v {
			if s, ok := item.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// cutAtStop ends a text where the tokens of a stop string are among its own. One that is cut into tokens in another way there is only deleted
// from the text.
func cutAtStop(texts, stops []string) (kept []string, stopped bool) {
	for _, stop := range stops {
		if stop == "" {
			return nil, true // it is before every token
		}
		for at := range texts {
			sequence := fakekit.Words(stop)
			if at+len(sequence) <= len(texts) && slices.Equal(texts[at:at+len(sequence)], sequence) {
				return texts[:at], true
			}
		}
		if whole := strings.Join(texts, ""); strings.Contains(whole, stop) {
			texts = fakekit.Words(strings.ReplaceAll(whole, stop, ""))
		}
	}
	return texts, false
}
