package text

import (
	"context"
	"errors"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Task is what a part has an engine generate. One model may be run by several engines, which are asked differently.
type Task interface {
	// upstream returns the engine's request, or the error of a task that the engine can't answer.
	upstream(engine wire.Engine) (wire.Upstream, *translate.Error)
	// decoder decodes the engine's answer.
	decoder(engine wire.Engine) translate.Decoder
	// tokenLimit is how many tokens the answer may have; 0 or less: there is no limit.
	tokenLimit() int
	// isRepeatable reports whether the engine probably gives the same answer again.
	isRepeatable(engine wire.Engine) bool
	// continued is as in [wire.Continuer].
	continued(engine wire.Engine, said *wire.Said) (_ wire.Upstream, ok bool)
}

// ChatTask is a choice of a chat.
type ChatTask struct {
	Body   *jsonbody.Body
	Chat   *request.Chat
	Choice int
}

func (q *ChatTask) upstream(engine wire.Engine) (wire.Upstream, *translate.Error) {
	if bad := engine.CheckChat(q.Body, q.Chat); bad != nil {
		return wire.Upstream{}, bad
	}
	return engine.Chat(q.Body, q.Chat, q.Choice), nil
}

func (q *ChatTask) decoder(engine wire.Engine) translate.Decoder {
	return wire.ChatDecoder(engine, q.Body, q.Chat)
}

func (q *ChatTask) tokenLimit() int { return q.Chat.TokenLimit(q.Body) }

func (q *ChatTask) isRepeatable(engine wire.Engine) bool { return wire.Repeats(engine, q.Body, q.Chat) }

func (q *ChatTask) continued(engine wire.Engine, said *wire.Said) (wire.Upstream, bool) {
	c, ok := engine.(wire.Continuer)
	if !ok {
		return wire.Upstream{}, false
	}
	return c.Continue(q.Body, q.Chat, q.Choice, said)
}

// CompletionTask is a candidate of a prompt that is completed.
type CompletionTask struct {
	Model             *catalog.Model
	Body              *jsonbody.Body
	Completion        *request.Completion
	Prompt, Candidate int
}

func (q *CompletionTask) upstream(engine wire.Engine) (wire.Upstream, *translate.Error) {
	completer, ok := engine.(wire.Completer)
	if !ok {
		return wire.Upstream{}, CompletesNothing(*q.Model)
	}
	if bad := completer.CheckCompletion(q.Body, q.Completion); bad != nil {
		return wire.Upstream{}, bad
	}
	return completer.Completion(q.Body, q.Completion, q.Prompt, q.Candidate), nil
}

func (q *CompletionTask) decoder(engine wire.Engine) translate.Decoder {
	return engine.(wire.Completer).CompletionDecoder(q.Completion)
}

func (q *CompletionTask) tokenLimit() int { return q.Completion.MaxTokens }

func (q *CompletionTask) isRepeatable(engine wire.Engine) bool {
	return wire.RepeatsText(engine, q.Body, q.Completion)
}

func (q *CompletionTask) continued(engine wire.Engine, said *wire.Said) (wire.Upstream, bool) {
	c, ok := engine.(wire.TextContinuer)
	if !ok {
		return wire.Upstream{}, false
	}
	return c.ContinueText(q.Body, q.Completion, q.Prompt, q.Candidate, said)
}

// CompletesNothing is the error of a request for text completions by an engine that has only chats.
func CompletesNothing(m catalog.Model) *translate.Error {
	return WrongEngine(m, "completes no texts: use /v1/chat/completions, or choose another model.")
}

// unparsed has the answer told that the engine couldn't parse, such as a call of no tool: the client gets the model's words. Of an answer
// that isn't the same twice, another is tried first: it may well be parsed.
func (r *Run) unparsed(ctx context.Context, lease *supervisor.Lease, t *relay, ask func() error, err error) error {
	q, isChat := t.Task.(*ChatTask)
	engine, ok := t.engine.(wire.Unparser)
	if !ok || !isChat {
		return err
	}
	said, isKnown := t.said()
	if isFresh := !t.isSeen || isKnown && said.IsEmpty(); isFresh && !q.isRepeatable(t.engine) && t.plan(true) {
		err = ask()
		if e, ok := errors.AsType[*translate.Error](err); !ok || !e.IsUnparsed() {
			return err
		}
		said, isKnown = t.said()
	}
	template, ok := engine.Template(q.Body, q.Chat)
	if !ok || t.isSeen && (!isKnown || !said.CanGoOn()) {
		return err
	}
	prompt := ""
	if err := r.Request.PostWhole(ctx, lease, template, func(answer []byte) error {
		var bad *translate.Error
		if prompt, bad = engine.Templated(answer); bad != nil {
			return bad
		}
		return nil
	}); err != nil {
		return err
	}
	r.Request.log(lease).Info("an answer is asked for unparsed")
	t.next, t.mode = engine.Unparsed(q.Body, q.Chat, q.Choice, prompt), wire.Raw
	return ask()
}
