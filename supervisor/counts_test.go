package supervisor

import (
	"math"
	"slices"
	"testing"
)

// phasesOf are those of a model that happened, with their numbers.
func phasesOf(c Counts) map[Phase]uint64 {
	all := map[Phase]uint64{}
	for phase, h := range c.Phases {
		all[phase], _ = h.Cumulative()
	}
	return all
}

func TestCounts_PhasesOfASwap(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	works(t, s)
	if got := phasesOf(s.Counts()["m"]); got[PhaseLaunch] != 1 || got[PhaseLoad] != 1 || got[PhaseUnload] != 0 {
		t.Errorf("after the load: %v", got)
	}
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	c := s.Counts()["m"]
	if got := phasesOf(c); got[PhaseUnload] != 1 || len(got) != 3 {
		t.Errorf("after the unload: %v", got)
	}
	if sum := c.Phases[PhaseLaunch].Sum + c.Phases[PhaseLoad].Sum; sum <= 0 || math.Abs(sum-c.Loads.Sum) > 1e-6 {
		t.Errorf("the phases of the load took %v, the load %v", sum, c.Loads.Sum)
	}
	for phase := range c.Phases {
		if !slices.Contains(Phases, phase) {
			t.Errorf("%s isn't listed", phase)
		}
	}
}
