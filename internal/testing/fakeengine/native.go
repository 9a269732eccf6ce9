package fakeengine

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// nativeChunk is a chunk of the real server's own stream of text.
type nativeChunk struct {
	Index         int          `json:"index"`
	Content       string       `json:"content"`
	Tokens        []int        `json:"tokens"`
	Stop          bool         `json:"stop"`
	Slot          int          `json:"id_slot"`
	Predicted     int          `json:"tokens_predicted"`
	Evaluated     int          `json:"tokens_evaluated"`
	Timings       *timings     `json:"timings,omitempty"`
	Progress      *progress    `json:"prompt_progress,omitempty"`
	Probabilities []likelihood `json:"completion_probabilities,omitempty"`
}

// likelihood is how likely a token was at its place.
type likelihood struct {
	ID      int          `json:"id"`
	Token   string       `json:"token"`
	Bytes   []int        `json:"bytes"`
	Logprob float64      `json:"logprob"`
	Top     []likelihood `json:"top_logprobs,omitempty"`
}

func (g *generation) sendNative(c nativeChunk) error {
	if !g.ask.stream {
		return g.check()
	}
	c.Slot, c.Evaluated = -1, g.prompt
	return g.write(frame(encode(c)))
}

func (g *generation) nativeProgress(processed int) error {
	return g.sendNative(nativeChunk{
		Tokens:   []int{0},
		Progress: &progress{Total: g.prompt, Cache: g.cached, Processed: processed},
	})
}

func (g *generation) nativeToken(text string) error {
	c := nativeChunk{Content: text, Tokens: []int{tokenID(text)}, Predicted: g.sent + 1}
	if n := g.ask.probabilities; n > 0 {
		c.Probabilities = []likelihood{g.likelihood(text, n)}
	}
	return g.sendNative(c)
}

// likelihood makes later tokens less likely, and the chosen one the likeliest.
func (g *generation) likelihood(text string, n int) likelihood {
	one := func(text string, place int) likelihood {
		p := likelihood{ID: tokenID(text), Token: text, Bytes: []int{}, Logprob: -float64(g.sent+1)/8 - float64(place)}
		for _, b := range []byte(text) {
			p.Bytes = append(p.Bytes, int(b))
		}
		return p
	}
	p := one(text, 0)
	for place := range n {
		p.Top = append(p.Top, one(text+strings.Repeat("'", place), place))
	}
	return p
}

// nativeFinish sends the last chunk, or the whole answer if it isn't streamed. There is no [DONE].
func (g *generation) nativeFinish() error {
	if err := g.check(); err != nil {
		return err
	}
	last := object{
		"index": 0, "content": "", "tokens": []int{}, "id_slot": g.held[0], "stop": true, "model": g.args.id(),
		"tokens_predicted": g.sent, "tokens_evaluated": g.prompt, "tokens_cached": g.prompt + g.sent,
		"generation_settings": object{"n_predict": g.ask.limit}, "prompt": g.ask.prompt, "truncated": false, "has_new_line": false,
		"stop_type": g.plan.stopType, "stopping_word": g.plan.stopString, "timings": g.timings(),
	}
	if !g.ask.stream {
		var text strings.Builder
		for _, p := range g.plan.pieces {
			text.WriteString(p.text)
		}
		last["content"] = text.String()
		writeBody(g.w, http.StatusOK, encode(last))
		return nil
	}
	if len(g.ask.fields) > 0 {
		chosen := object{}
		for _, name := range g.ask.fields {
			if value, ok := last[name]; ok {
				chosen[name] = value
			}
		}
		last = chosen
	}
	return g.write(frame(encode(last)))
}

// unsupported returns why the model or the server can't serve any such request.
func (g *generation) unsupported(body string) error {
	var message string
	switch {
	case g.kind == embedding && !g.args.embeddings:
		message = "This server does not support embeddings. Start it with `--embeddings`"
	case g.kind == ranking && !g.args.reranking:
		message = "This server does not support reranking. Start it with `--reranking`"
	case g.kind == native && gjson.Get(body, "input_prefix").Exists() && !g.script().Infill:
		message = "Infill is not supported by this model: prefix token is missing. suffix token is missing. middle token is missing. "
	default:
		return nil
	}
	return &apiError{Code: http.StatusNotImplemented, Message: message, Type: "not_supported_error"}
}
