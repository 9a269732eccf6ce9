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

// ask has the engine of a request's model answer a question that takes none of its time. upstream is asked before anything is loaded, too.
func ask(rq *text.Request, upstream func(wire.Engine) (wire.Upstream, func(answer []byte) error, *translate.Error)) error {
	if _, _, bad := upstream(rq.Engine); bad != nil {
		return bad
	}
	if err := rq.ReserveTexts(1, len(rq.Body.Raw)); err != nil {
		return err
	}
	rq.Demand.Priority = true
	_, err := rq.InParts(1, func(engine wire.Engine, _ int) (wire.Upstream, func([]byte) error, *translate.Error) {
		return upstream(engine)
	})
	return err
}

// orNil makes no error of a nil pointer.
func orNil(bad *translate.Error) error {
	if bad == nil {
		return nil
	}
	return bad
}

// tokenize is POST /tokenize.
func tokenize(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openaiwire.WithDefaults, nil)
	if err != nil {
		return err
	}
	question, bad := llama.ParseTokenize(rq.Body)
	if bad != nil {
		return bad
	}
	var said struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	err = ask(rq, func(engine wire.Engine) (up wire.Upstream, _ func([]byte) error, _ *translate.Error) {
		tokenizer, ok := engine.(wire.Tokenizer)
		if !ok {
			return up, nil, text.WrongEngine(rq.Target.Model, "doesn't tell its tokens: choose another model.")
		}
		return tokenizer.Tokenize(question), func(answer []byte) error {
			said.Tokens, bad = tokenizer.Tokenized(answer)
			return orNil(bad)
		}, nil
	})
	if err != nil {
		return err
	}
	return c.Answer(said)
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
	err = ask(rq, func(engine wire.Engine) (up wire.Upstream, _ func([]byte) error, _ *translate.Error) {
		detokenizer, ok := engine.(wire.Detokenizer)
		if !ok {
			return up, nil, text.WrongEngine(rq.Target.Model, "takes no token ids: choose another model.")
		}
		return detokenizer.Detokenize(tokens), func(answer []byte) error {
			said.Content, bad = detokenizer.Detokenized(answer)
			return orNil(bad)
		}, nil
	})
	if e, ok := errors.AsType[*translate.Error](err); ok && e.Kind == translate.KindEngineFailed { // it has nothing else to refuse
		return llama.NoToken()
	}
	if err != nil {
		return err
	}
	return c.Answer(said)
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
	err = ask(rq, func(engine wire.Engine) (up wire.Upstream, _ func([]byte) error, _ *translate.Error) {
		renderer, ok := engine.(wire.Unparser)
		if !ok {
			return up, nil, text.WrongEngine(rq.Target.Model, "doesn't show its prompts: choose another model.")
		}
		if up, ok = renderer.Template(rq.Body, chat); !ok {
			return up, nil, translate.Invalid("unsupported_content", "messages",
				"The prompt of a chat with images can't be shown as a text: leave the images out.")
		}
		return up, func(answer []byte) error {
			made.Prompt, bad = renderer.Templated(answer)
			return orNil(bad)
		}, nil
	})
	if err != nil {
		return err
	}
	return c.Answer(made)
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
	p.Modalities.Vision = m.Vision
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
