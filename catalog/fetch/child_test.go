package fetch

import (
	"os"
)

// childIfAsked makes the process download, for tests that kill it. It is the test binary, started again.
func childIfAsked() {
	home := os.Getenv("FETCH_TEST_HOME")
	if home == "" {
		return
	}
	os.Exit(child(home, os.Getenv("FETCH_TEST_HUB"), os.Getenv("FETCH_TEST_MODEL")))
}
