package text

import (
	"context"
	"errors"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// An engine may be unable to parse what the model says: a call of no tool, or an answer without the tags that the model should write.
// The client gets the model's words then.

// maxTemplated bounds the response with the prompt of a chat, in bytes.
const maxTemplated = 64 << 20

func isUnparsed(err error) bool {
	e, ok := errors.AsType[*translate.Error](err)
	return ok && e.IsUnparsed()
}

// blamed returns the engine's error about a request as one about the client's.
func (t *relay) blamed(err error) error {
	fault, ok := err.(*translate.Error) //nolint:errorlint // others say more than the engine has
	if q, isChat := t.Task.(*ChatTask); ok && isChat {
		return q.Chat.Blame(q.Body, fault)
	}
	return err
}

// unparsed has the answer told that the engine couldn't parse, which ended it with an error. Of an answer that isn't the same twice, another
// is tried first: it may well be parsed.
func (r *Run) unparsed(ctx context.Context, lease *supervisor.Lease, t *relay, ask func() error, err error) error {
	q, isChat := t.Task.(*ChatTask)
	engine, ok := t.engine.(wire.Unparser)
	if !ok || !isChat {
		return err
	}
	said, isKnown := t.said()
	if isFresh := !t.isSeen || isKnown && said.IsEmpty(); isFresh && !q.isRepeatable(t.engine) && t.plan(true) {
		if err = ask(); !isUnparsed(err) {
			return err
		}
		said, isKnown = t.said()
	}
	template, ok := engine.Template(q.Body, q.Chat)
	if !ok || t.isSeen && (!isKnown || !said.CanGoOn()) {
		return err
	}
	prompt := ""
	if err := r.Request.Post(ctx, lease, template, func(resp *Response) error {
		answer, err := resp.ReadAll(ctx, maxTemplated)
		if err != nil {
			return err
		}
		var bad *translate.Error
		if prompt, bad = engine.Templated(answer); bad != nil {
			return bad
		}
		return nil
	}); err != nil {
		return err
	}
	r.Call.Site.Log.Info("an answer is asked for unparsed", "request", r.Call.ID, "instance", lease.Instance.ID)
	t.next, t.mode = engine.Unparsed(q.Body, q.Chat, q.Choice, prompt), wire.Raw
	return ask()
}
