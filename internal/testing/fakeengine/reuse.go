package fakeengine

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// content is what a slot holds of its last request.
type content struct {
	tokens []int32
	state  []byte
	wrong  bool // the state was computed with other weights, or damaged
}

// nonsense is what a model says whose state is wrong.
const nonsense = "wrong wrong wrong"

// fitTokens makes as many tokens as the rule says that the prompt has. Those that are missing come first.
func (g *generation) fitTokens() {
	if g.args.states == "" {
		return
	}
	if missing := g.prompt - len(g.ask.ids); missing > 0 {
		g.ask.ids = append(slices.Repeat([]int32{5}, missing), g.ask.ids...)
	}
	g.ask.ids = g.ask.ids[:g.prompt]
}

// reuse takes the tokens of the prompt that the slot holds already, and drops the others. Only a process that can save its slots
// knows what they hold.
func (g *generation) reuse() {
	if g.args.states == "" {
		return
	}
	held, ids := g.slots.content(g.held[0]), g.ask.ids
	common := 0
	for !g.ask.anew && common < min(len(held.tokens), len(ids)) && held.tokens[common] == ids[common] {
		common++
	}
	g.cached = max(g.cached, min(common, g.prompt-1))
	g.misled = held.wrong && common > 0
	g.slots.hold(g.held[0], content{ids[:common], held.state[:tokenState*common], g.misled})
}

// keep adds tokens to what the slot holds.
func (g *generation) keep(ids ...int32) {
	if g.args.states == "" || len(ids) == 0 {
		return
	}
	held := g.slots.content(g.held[0])
	tokens := append(slices.Clip(held.tokens), ids...)
	state := stateOf(g.weights(), tokens)
	copy(state, held.state)
	g.slots.hold(g.held[0], content{tokens, state, held.wrong})
}

// keepPrompt adds what is missing of the prompt.
func (g *generation) keepPrompt() {
	if g.args.states != "" {
		g.keep(g.ask.ids[len(g.slots.content(g.held[0]).tokens):]...)
	}
}

// keepAnswer adds the tokens of the answer except the last one, which the model hasn't processed.
func (g *generation) keepAnswer() {
	var ids []int32
	for i := range g.sent - 1 {
		ids = append(ids, int32(tokenID(g.plan.pieces[i].text)))
	}
	g.keep(ids...)
}

// idsOf returns the tokens of a prompt: those of the words of each message, in a frame of four.
func idsOf(top gjson.Result, k kind) []int32 {
	if k != chat {
		return idsOfText(nil, top.Get(required[k]).String())
	}
	ids := []int32{1}
	for _, m := range top.Get("messages").Array() {
		ids = append(ids, 2, int32(tokenID(m.Get("role").String())), 3, 4)
		ids = idsOfText(ids, textOf(m))
	}
	return ids
}

func idsOfText(ids []int32, text string) []int32 {
	for _, word := range fakekit.Words(text) {
		ids = append(ids, int32(tokenID(word)))
	}
	return ids
}
