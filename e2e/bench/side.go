package bench

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// sideMost is the target for a turn of a conversation that has its slot to itself: the tokens of a question of sideQuestion tokens, of the answer
// before it, and of what the template puts around them.
const (
	sideQuestion = 30
	sideMost     = 100
)

// sideRequests measures a long conversation with a request for a title after each turn, while nothing is evicted. With -before, the older
// lmcaddy does the same.
func sideRequests(t testing.TB, out io.Writer, p warmPlan) (verdicts []verdict) {
	size := p.sizes[len(p.sizes)-1] / 2
	printf(out, "\nTITLES BETWEEN A CONVERSATION'S TURNS  (%d tokens; a fifth are the system prompt, which the requests for a title have, too)", size)
	printf(out, "%-46s%10s%12s   %s", "", "processed", "took", "tokens processed for each turn of the conversation after the first")
	for _, cache := range []string{"", ", no cache in memory"} {
		arms := []arm{{name: "now", lines: warmOff.lines}}
		if *before != "" {
			arms = append(arms, arm{name: "before", binary: *before, lines: []string{"max_loaded 1"}})
		}
		for _, a := range arms {
			a.name += cache
			if cache != "" {
				a.engine = []string{"args --cache-ram 0"}
			}
			processed := aside(t, out, a, p, size)
			if a.binary == "" {
				verdicts = append(verdicts, atMost("titles"+cache+": tokens processed for a turn", processed, sideMost))
			}
		}
	}
	return verdicts
}

// aside returns the tokens that were processed for a turn of the conversation, on average.
func aside(t testing.TB, out io.Writer, a arm, p warmPlan, size int) float64 {
	t.Helper()
	s := a.start(a.home(t, p.shape))
	main := harness.NewTalk(slowModel, harness.Words(1, size/5))
	system := main.Fork()
	main.Say(s, harness.Words(2, size-size/5))
	var sum harness.Turn
	var each []string
	for i := range p.turns {
		system.Fork().Say(s, "Give this a title: "+harness.Words(uint64(i), sideQuestion))
		done := main.Say(s, harness.Words(uint64(i), sideQuestion))
		each = append(each, fmt.Sprint(done.Processed))
		sum.Processed, sum.Took = sum.Processed+done.Processed, sum.Took+done.Took
	}
	s.Stop(syscall.SIGINT, harness.Patience)
	printf(out, "%-46s%10d%12s   %s", a.name, sum.Processed, seconds(sum.Took.Seconds()), strings.Join(each, " "))
	return float64(sum.Processed) / float64(p.turns)
}
