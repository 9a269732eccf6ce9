// Package llama has llama-server's own endpoints, for clients of it: editors that complete code, and tools that look at how a model reads a text.
package llama

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llama"
	openaiwire "github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ask answers with what the engine says, which takes none of its time.
func ask[E any](
	rq *text.Request, answer any, lacks string,
	up func(E) (wire.Upstream, *translate.Error), take func(engine E, said []byte) *translate.Error,
) error {
	rq.Demand.Priority = true
	_, err := text.Parts[E]{
		Number: 1, Texts: 1, Bytes: len(rq.Body.Raw), Lacks: lacks,
		Ask:  func(engine E, _ int) (wire.Upstream, *translate.Error) { return up(engine) },
		Take: func(engine E, _ int, said []byte) *translate.Error { return take(engine, said) },
	}.Post(rq)
	if err != nil {
		return err
	}
	return rq.Call.Answer(answer)
}

// tokenize is POST /tokenize.
func tokenize(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openaiwire.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := llama.ParseTokenize(rq.Body)
	if bad != nil {
		return bad
	}
	var said struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	return ask(rq, &said, "doesn't tell its tokens: choose another model.",
		func(engine wire.Tokenizer) (wire.Upstream, *translate.Error) { return engine.Tokenize(asked), nil },
		func(engine wire.Tokenizer, answer []byte) (bad *translate.Error) {
			said.Tokens, bad = engine.Tokenized(answer)
			return bad
		})
}

// detokenize is POST /detokenize.
func detokenize(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openaiwire.WithDefaults, nil)
	if err != nil {
		return err
	}
	tokens, bad := llama.ParseDetokenize(rq.Body, rq.Caps.Vocabulary)
	if bad != nil {
		return bad
	}
	var said struct {
		Content string `json:"content"`
	}
	err = ask(rq, &said, "takes no token ids: choose another model.",
		func(engine wire.Detokenizer) (wire.Upstream, *translate.Error) { return engine.Detokenize(tokens), nil },
		func(engine wire.Detokenizer, answer []byte) (bad *translate.Error) {
			said.Content, bad = engine.Detokenized(answer)
			return bad
		})
	if e, ok := errors.AsType[*translate.Error](err); ok && e.Answered == http.StatusInternalServerError { // it has nothing else to refuse
		return llama.NoToken()
	}
	return err
}

// applyTemplate is POST /apply-template: the prompt that the model's template makes of a chat.
func applyTemplate(c *endpoint.Call) error {
	rq, err := text.Read(c, openaiwire.WithDefaults, nil)
	if err != nil {
		return err
	}
	chat, bad := openaiwire.ParseChat(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	var made struct {
		Prompt string `json:"prompt"`
	}
	return ask(rq, &made, "doesn't show its prompts: choose another model.",
		func(engine wire.Unparser) (up wire.Upstream, bad *translate.Error) {
			up, ok := engine.Template(rq.Body, chat)
			if !ok {
				bad = translate.Invalid("unsupported_content", "messages",
					"The prompt of a chat with images or audio can't be shown as a text: leave them out.")
			}
			return up, bad
		},
		func(engine wire.Unparser, answer []byte) (bad *translate.Error) {
			made.Prompt, bad = engine.Templated(answer)
			return bad
		})
}

// modelOf is the model that a request without a body names, and its instances. Without a name it is the only one that it can be.
func modelOf(c *endpoint.Call) (node.Target, []supervisor.Info, error) {
	name := c.Request.URL.Query().Get("model")
	if name == "" {
		key, err := text.OnlyModel(c)
		if err != nil {
			return node.Target{}, nil, err
		}
		if name = key; name == "" {
			return node.Target{}, nil, translate.Invalid("missing_required_parameter", "model", `Several models could be meant: name one, as "?model=".`)
		}
	}
	target, err := c.Find(name)
	if err != nil {
		return target, nil, err
	}
	return target, slices.DeleteFunc(c.Node.Instances(), func(in supervisor.Info) bool {
		return in.Spec.Model.Key != target.Model.Key || target.Instance != "" && in.ID != target.Instance || !in.IsLoaded()
	}), nil
}

// props is GET /props. Nothing is loaded for it.
func props(c *endpoint.Call) error {
	target, instances, err := modelOf(c)
	if err != nil {
		return err
	}
	m := &target.Model
	details, err := c.Node.Details(m)
	if err != nil {
		return err
	}
	p := llama.Props{Alias: m.Key, Path: filepath.Base(m.Path), Template: details.ChatTemplate, Sleeps: len(instances) == 0}
	p.Modalities.Vision, p.Modalities.Audio = m.Vision, m.Audio
	p.Defaults.Context, p.Defaults.Params = c.Node.Loads.ContextLength(c.Request.Context(), target), map[string]any{}
	for _, in := range instances {
		p.Alias, p.Build, p.Slots = in.ID, in.Build.Version, max(1, in.Spec.Parallel)
		p.Defaults.Context = in.Spec.ContextLength
	}
	return c.Answer(p)
}

// slots is GET /slots: those of the model's loaded instances. What their prompts are, is nobody else's business.
func slots(c *endpoint.Call) error {
	_, instances, err := modelOf(c)
	if err != nil {
		return err
	}
	all := []llama.Slot{}
	for _, in := range instances {
		for i := range max(1, in.Spec.Parallel) {
			all = append(all, llama.Slot{
				ID: len(all), Context: in.Spec.ContextLength, IsSpeculative: in.Spec.Draft != nil, IsProcessing: i < in.InUse,
			})
		}
	}
	c.WriteJSON(http.StatusOK, jsonbody.AppendJSON(nil, all))
	return nil
}
