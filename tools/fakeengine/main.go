// Fakeengine is the tests' engine as a program of its own, for tests that aren't Go's own binary:
//
//	go build -o DIR/llama-server ./tools/fakeengine
//
// It has to be called llama-server, with its script beside it. internal/fakeengine says what it does, and how it is scripted.
package main

import (
	"fmt"
	"os"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

func main() {
	fakeengine.MainIfChild()
	fmt.Fprintln(os.Stderr, "fakeengine: call it llama-server, and put a script.json beside it")
	os.Exit(1)
}
