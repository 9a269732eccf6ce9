package api

import (
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// question is what a part asks of an engine. One model may be run by several engines, which are asked differently.
type question interface {
	// ask returns the engine's request, or the error of a question that the engine can't answer.
	ask(engine wire.Engine) (wire.Upstream, *translate.Error)
	// decoder decodes the engine's answer.
	decoder(engine wire.Engine) translate.Decoder
	// limit is how many tokens the answer may have; 0 or less: there is no limit.
	limit() int
	// repeats reports whether the engine probably gives the same answer again.
	repeats(engine wire.Engine) bool
	// goOn is as in [wire.Continuer].
	goOn(engine wire.Engine, said *wire.Said) (_ wire.Upstream, ok bool)
}

// chatQuestion asks for a choice of a chat.
type chatQuestion struct {
	body   *jsonbody.Body
	chat   *request.Chat
	choice int
}

func (q *chatQuestion) ask(engine wire.Engine) (wire.Upstream, *translate.Error) {
	if checker, ok := engine.(wire.ChatChecker); ok {
		if bad := checker.CheckChat(q.body, q.chat); bad != nil {
			return wire.Upstream{}, bad
		}
	}
	return engine.Chat(q.body, q.chat, q.choice), nil
}

func (q *chatQuestion) decoder(engine wire.Engine) translate.Decoder {
	return wire.ChatDecoder(engine, q.body, q.chat)
}

func (q *chatQuestion) limit() int { return q.chat.TokenLimit(q.body) }

func (q *chatQuestion) repeats(engine wire.Engine) bool { return wire.Repeats(engine, q.body, q.chat) }

func (q *chatQuestion) goOn(engine wire.Engine, said *wire.Said) (wire.Upstream, bool) {
	c, ok := engine.(wire.Continuer)
	if !ok {
		return wire.Upstream{}, false
	}
	return c.Continue(q.body, q.chat, q.choice, said)
}

// textQuestion asks for a candidate of a prompt that is completed.
type textQuestion struct {
	model             *catalog.Model
	body              *jsonbody.Body
	of                *request.Completion
	prompt, candidate int
}

func (q *textQuestion) ask(engine wire.Engine) (wire.Upstream, *translate.Error) {
	completer, ok := engine.(wire.Completer)
	if !ok {
		return wire.Upstream{}, completesNothing(*q.model)
	}
	if checker, ok := engine.(wire.CompletionChecker); ok {
		if bad := checker.CheckCompletion(q.body, q.of); bad != nil {
			return wire.Upstream{}, bad
		}
	}
	return completer.Completion(q.body, q.of, q.prompt, q.candidate), nil
}

// decoder is called with an engine that was asked.
func (q *textQuestion) decoder(engine wire.Engine) translate.Decoder {
	return engine.(wire.Completer).CompletionDecoder(q.of)
}

func (q *textQuestion) limit() int { return q.of.MaxTokens }

func (q *textQuestion) repeats(engine wire.Engine) bool {
	return wire.RepeatsText(engine, q.body, q.of)
}

func (q *textQuestion) goOn(engine wire.Engine, said *wire.Said) (wire.Upstream, bool) {
	c, ok := engine.(wire.TextContinuer)
	if !ok {
		return wire.Upstream{}, false
	}
	return c.ContinueText(q.body, q.of, q.prompt, q.candidate, said)
}

// completesNothing is the error of a request for text completions by an engine that has only chats.
func completesNothing(m catalog.Model) *translate.Error {
	return wrongEngine(m, "completes no texts: use /v1/chat/completions, or choose another model.")
}
