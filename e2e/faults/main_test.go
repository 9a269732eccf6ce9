package faults

import (
	"flag"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	full   = flag.Bool("full", false, "run each fault for many rounds, and print a table")
	before = flag.String("before", "", "with -full: an older lmcaddy that goes through the same rounds")
	rounds = flag.Int("rounds", 0, "with -full: the rounds of each fault; 0: as many as it has")
	seed   = flag.Uint64("seed", 0, "of what is chosen at random; 0: another each time")
	only   = flag.String("only", "", "the faults whose names contain this alone")
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Main(m)
}
