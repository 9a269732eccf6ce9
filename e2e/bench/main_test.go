package bench

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	full     = flag.Bool("full", false, "measure, for some minutes, and print a table")
	rounds   = flag.Int("rounds", 9, "with -full: how often each thing is measured")
	shrink   = flag.Int("shrink", 1, "with -full: divide the requests that the memory is measured over by this")
	only     = flag.String("only", "", "with -full: proxy, memory, swap, auth, hop or warm alone, or the load of this name; with -profile: the load of this name alone")
	before   = flag.String("before", "", "with -full: an older lmcaddy, which gets the same requests, and those between a conversation's turns")
	profiles = flag.String("profile", "", "write profiles of processor time to this folder, print where it goes, and measure nothing")
	update   = flag.Bool("update", false, "with -full and -profile: write the figures into docs/performance.md, and the ratios into ratios.json")
)

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case engineName:
		os.Exit(serveEngine(os.Args[1:]))
	case floorName:
		os.Exit(serveFloor(os.Args[1:]))
	}
	flag.Parse()
	harness.Main(m)
}
