// Command program is the fake mlx_lm.server as a program of its own, for tests outside this module. It is started through a link with
// the name mlx_lm.server in a folder with a script: see package fakemlx.
package main

import (
	"fmt"
	"os"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

func main() {
	fakemlx.MainIfChild()
	fmt.Fprintln(os.Stderr, "This is a fake mlx_lm.server: start it through a link named mlx_lm.server, beside a script.json.")
	os.Exit(2)
}
