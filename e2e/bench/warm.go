package bench

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// warmPlan is the extent of the measurement of conversations.
type warmPlan struct {
	shape  randommodel.Shape
	rounds int
	sizes  []int // of conversations, in tokens; the last one has the target
	turns  int   // of each agent, and of a conversation with side requests
	swaps  int
}

// The targets: load, restore and a turn, to load and processing everything again; and a swap with nothing to save, to one by hand.
const (
	restoreRatio = 0.2
	swapUnsaved  = 1.05
)

// departure is a way for an engine to end. It returns the server that runs afterwards.
type departure struct {
	name  string
	leave func(*harness.Server, arm) *harness.Server
}

// longQuestion is the length of a question, in tokens, that makes a slot worth saving again.
const longQuestion = 300

var departures = []departure{
	{"after another model took its place", func(s *harness.Server, _ arm) *harness.Server {
		harness.NewTalk(otherModel, "").Say(s, "Hello")
		return s
	}},
	{"after a restart of lmcaddy", func(s *harness.Server, a arm) *harness.Server {
		s.Stop(syscall.SIGINT, harness.Patience)
		return a.start(s.Home)
	}},
	{"after kill -9 of lmcaddy, files not cached", func(s *harness.Server, a arm) *harness.Server {
		s.Kill()
		dropCache(s.Home)
		return a.start(s.Home)
	}},
}

// conversations measures everything about conversations whose engines don't stay.
func conversations(t testing.TB, out io.Writer, p warmPlan) []verdict {
	verdicts := returns(t, out, p)
	verdicts = append(verdicts, agents(t, out, p)...)
	verdicts = append(verdicts, sideRequests(t, out, p)...)

	home := harness.NewHome(t)
	models := swapped{"lmcaddy/one", "lmcaddy/another"}
	for i, model := range models {
		home.AddRandom(model, p.shape, uint64(i))
	}
	printf(out, "\nSWAP WITH NOTHING TO SAVE (medians of %d, as the swap above, of models like those of the conversations)", p.swaps)
	_, _, ratio := measureSwaps(t, out, home, models, p.swaps)
	return append(verdicts, atMost("swap of models with nothing to save, to that by hand", ratio, swapUnsaved))
}

// returned is a turn after a departure, with and without states that are kept, and its text if the engine had stayed.
type returned struct {
	warm, cold harness.Turn
	text       string
}

// returns measures conversations that return after their engine has ended, and reports whether our targets were met.
func returns(t testing.TB, out io.Writer, p warmPlan) (verdicts []verdict) {
	printf(out, "\nCONVERSATIONS THAT RETURN  (%s, of %d layers, %d wide, on one thread; medians of %d rounds)",
		p.shape.Architecture, p.shape.Layers, p.shape.Width, p.rounds)
	printf(out, "  %-18s load, restore, and a turn with an answer of %d tokens", warmOn.name, harness.TurnTokens)
	printf(out, "  %-18s load, and the same turn with all of its prompt", warmOff.name)
	printf(out, "%8s  %-44s%12s%12s%8s   %s", "tokens", "", warmOn.name, warmOff.name, "ratio", "tokens processed: warm, warm off")
	differ, turns := 0, 0
	for _, size := range p.sizes {
		all := make([][]returned, len(departures)) // each with its rounds
		for round := range p.rounds {
			for i, r := range returnOnce(t, p.shape, uint64(round), size) {
				all[i] = append(all[i], r)
				turns++
				if r.warm.Text != r.text {
					differ++
				}
			}
		}
		for i, rounds := range all {
			ratio := median(each(rounds, func(r returned) float64 { return float64(r.warm.Took) / float64(r.cold.Took) }))
			printf(out, "%8d  %-44s%12s%12s%8.3f   %6d %6d", rounds[0].cold.Prompt, departures[i].name,
				seconds(median(each(rounds, func(r returned) float64 { return r.warm.Took.Seconds() }))),
				seconds(median(each(rounds, func(r returned) float64 { return r.cold.Took.Seconds() }))), ratio,
				rounds[0].warm.Processed, rounds[0].cold.Processed)
			if size == p.sizes[len(p.sizes)-1] {
				verdicts = append(verdicts, atMost(fmt.Sprintf("%d tokens %s", rounds[0].cold.Prompt, departures[i].name), ratio, restoreRatio))
			}
		}
	}
	what := fmt.Sprintf("answers of %d that differ from those of an engine that stayed", turns)
	return append(verdicts, verdict{what, fmt.Sprint(differ), "none", differ == 0})
}

// returnOnce carries on conversations with an engine that stays, then the same ones with states that are kept over the departures, and
// without them.
func returnOnce(t testing.TB, shape randommodel.Shape, seed uint64, size int) []returned {
	t.Helper()
	const next = "Go on"
	long := func(i int) string { return harness.Words(100+uint64(i), longQuestion) } //nolint:gosec // an index
	begin := harness.NewTalk(slowModel, harness.Words(seed, size-longQuestion))
	all := make([]returned, len(departures))

	staying, warmOn, warmOff := staying.onOneSlot(), warmOn.onOneSlot(), warmOff.onOneSlot()
	s := staying.start(staying.home(t, shape))
	stayed := make([]*harness.Talk, len(all))
	for i := range all {
		stayed[i] = begin.Fork()
		stayed[i].Say(s, long(i))
		all[i].text = stayed[i].Say(s, next).Text
	}
	s.Stop(syscall.SIGINT, harness.Patience)

	s = warmOn.start(warmOn.home(t, shape))
	for i, d := range departures {
		talk, asked := begin.Fork(), time.Now()
		talk.Say(s, long(i))
		s.WaitState(asked)
		s = d.leave(s, warmOn)
		all[i].warm = talk.Say(s, next)
	}
	s.Stop(syscall.SIGINT, harness.Patience)

	s = warmOff.start(warmOff.home(t, shape))
	for i, d := range departures {
		s = d.leave(s, warmOff)
		const asked = 3 // the system prompt, the question, the answer
		all[i].cold = (&harness.Talk{Model: slowModel, Messages: slices.Clone(stayed[i].Messages[:asked])}).Say(s, next)
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	return all
}

func each[T any](all []T, of func(T) float64) []float64 {
	values := make([]float64, len(all))
	for i, one := range all {
		values[i] = of(one)
	}
	return values
}
