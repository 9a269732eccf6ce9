package fakemlx

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// fails is an exception amid the generation: it ends the thread, or, in a request that is served alone, the answer.
func (g *generation) fails(err *exception) error {
	if g.alone {
		if g.tokens == 0 { // nothing has begun
			return cmp.Or(g.refuse(err), errAnswered)
		}
		return err
	}
	g.perish(err, g.n)
	select {}
}

// early are the mistakes in a request that the real server notices when it prepares it.
func (g *generation) early() error {
	switch stop := g.ask.body["stop"].(type) {
	case []any:
		for _, item := range stop {
			if _, ok := item.(string); !ok {
				return g.fails(errNoText)
			}
		}
	case json.Number:
		if number(stop) != 0 {
			return g.fails(raise("TypeError", "'%s' object is not iterable", pythonType(stop)))
		}
	}
	if g.ask.isList() && !g.alone {
		return g.fails(raise("TypeError", "cannot use 'list' as a dict key (unhashable type: 'list')"))
	}
	return nil
}

// afterHead are the mistakes that it notices once it has written the header of a stream.
func (g *generation) afterHead() error {
	text, ok := g.ask.prompt.(string)
	switch {
	case g.ask.badSeed:
		return raise("TypeError", "seed(): incompatible function arguments.")
	case g.ask.isList():
		return raise("TypeError", "cannot use 'list' as a dict key (unhashable type: 'list')")
	case ok && text == "" && !g.ask.chat:
		if !g.alone {
			_ = g.progress(0, 0)
		}
		return g.fails(raise("TypeError", "'NoneType' object is not subscriptable"))
	}
	return nil
}

// late are those that it notices when it makes the first token, before the end of the prompt is told.
func (g *generation) late() error {
	size := g.thread.model.vocabulary
	for id := range g.ask.bias {
		if n, err := strconv.Atoi(id); err != nil || n >= size {
			g.die(fakekit.Death{Signal: 11}, "logit_bias")
		}
	}
	if g.ask.temp > 0 && g.ask.topK >= size {
		return g.fails(raise("ValueError", "`top_k` has to be an integer in the (0, %d] interval, but is %d.", size, g.ask.topK))
	}
	return nil
}

// atLast are those that it notices when there is no token at all.
func (g *generation) atLast() error {
	if g.alone && g.ask.limit == 0 {
		return raise("UnboundLocalError", "cannot access local variable 'token' where it is not associated with a value")
	}
	return nil
}

func (p *process) die(d fakekit.Death, reason string) { p.Die(d, p.args.model, reason) }
