package web

import (
	"os/exec"
	"testing"
)

// TestPage_Units runs the tests of what the page computes, in test. It isn't parallel, since it installs what they need.
func TestPage_Units(t *testing.T) {
	for _, command := range [][]string{
		{"../tools/node.sh", "../.cache/page", "../web"},
		{"ln", "-sfn", "../.cache/page/node_modules", "node_modules"},
		{"node", "test.mjs"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
}
