// Fakeengine is the fake engine of the tests as a program, for tests outside this module:
//
//	go build -o DIR/llama-server ./tools/fakeengine
//
// It must be named llama-server, with its script in the same folder. See internal/testing/fakeengine.
package main

import (
	"fmt"
	"os"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func main() {
	fakeengine.MainIfChild()
	fmt.Fprintln(os.Stderr, "fakeengine: call it llama-server, and put a script.json beside it")
	os.Exit(1)
}
