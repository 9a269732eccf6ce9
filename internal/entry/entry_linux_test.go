package entry

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntry_ComesThroughTheEnvironment(t *testing.T) {
	t.Parallel()
	want := &Entry{Ruleset: 3, Status: 4, Rights: 1<<63 | 1, Death: 9, Parent: 7, Ignored: 1 << 12, Blocked: 1<<14 | 1, Self: "/proc/self/task", Path: "/a path/with spaces "}
	_, value, _ := strings.Cut(want.Env(), "=")
	if got, err := parse(value); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

// A variable that isn't from here starts nothing, also not the program.
func TestEntry_OfAnythingElse(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "x", "1 2 3 4 5 6 7 /proc/self", "1 2 3 4 5 6 x /proc/self /bin/true", "90 91 0 0 0 0 0 /proc/self /bin/true"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^$")
		cmd.Env = []string{variable + "=" + value}
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "PASS") {
			t.Errorf("%q: %v, %s", value, err, out)
		}
	}
}
