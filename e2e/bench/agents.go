package bench

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// agents measures two sessions of a coding agent: the same long system prompt, different talk, and after each turn another model takes the engine's
// place.
func agents(t testing.TB, out io.Writer, p warmPlan) []verdict {
	size := p.sizes[len(p.sizes)-1]
	printf(out, "\nTWO SESSIONS OF AN AGENT  (the same system prompt of %d tokens, turns in turn, another model after each; max_loaded 1)", size)
	printf(out, "%-18s%10s%12s   %s", "", "processed", "took", "tokens processed for each turn")
	sums := map[string]float64{}
	for _, a := range []arm{warmOn, warmOff} {
		s := a.start(a.home(t, p.shape))
		other := harness.NewTalk(otherModel, "")
		one := harness.NewTalk(slowModel, harness.Words(1, size))
		sessions := []*harness.Talk{one, one.Fork()}
		var sum harness.Turn
		var processed []string
		for i := range p.turns * len(sessions) {
			who := i % len(sessions)
			done := sessions[who].Say(s, harness.Words(uint64(who), 30))
			processed = append(processed, fmt.Sprint(done.Processed))
			if i >= 1 { // the first one has to process all
				sum.Processed, sum.Took = sum.Processed+done.Processed, sum.Took+done.Took
			}
			other.Say(s, "Hello")
		}
		s.Stop(syscall.SIGINT, harness.Patience)
		printf(out, "%-18s%10d%12s   %s", a.name, sum.Processed, seconds(sum.Took.Seconds()), strings.Join(processed, " "))
		sums[a.name] = float64(sum.Processed)
	}
	return []verdict{atMost("agents: tokens processed after the first turn, to those with warm off", sums[warmOn.name]/sums[warmOff.name], restoreRatio)}
}
