package bench

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// The models of conversations: one whose prompts take long, and another that takes its place.
const (
	slowModel  = "lmcaddy/slow"
	otherModel = harness.Model
)

// arm is a way to run lmcaddy.
type arm struct {
	name   string
	binary string   // empty: the one under test
	lines  []string // of lm
	engine []string // of the engine
}

// The states of slots are saved sooner than by default, so that a kill doesn't have to wait for a minute.
var (
	warmOn  = arm{name: "warm", lines: []string{"max_loaded 1", "warm {", "\tsave_after 2s", "}"}}
	warmOff = arm{name: "warm off", lines: []string{"max_loaded 1", "warm off"}}
	staying = arm{name: "nothing is evicted", lines: []string{"max_loaded 2", "warm off"}}
)

// onOneSlot returns the arm with engines whose conversations follow the same course in each arm.
func (a arm) onOneSlot() arm {
	a.engine = []string{"parallel 1"}
	return a
}

// home is one with both models.
func (a arm) home(t testing.TB, shape randommodel.Shape) *harness.Home {
	home := harness.NewHome(t)
	home.Binary = a.binary
	home.AddRandom(slowModel, shape, 1)
	return home
}

func (a arm) start(home *harness.Home) *harness.Server {
	return harness.Start(home, harness.Config{LM: a.lines, Engine: a.engine})
}

// dropCache has the kernel forget the content of the states' files, as after a restart of the machine.
func dropCache(home *harness.Home) {
	for _, path := range home.StateFiles() {
		file, err := os.Open(path)
		if err != nil {
			home.T.Fatal(err)
		}
		err = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
		_ = file.Close()
		if err != nil {
			home.T.Fatal(err)
		}
	}
}
