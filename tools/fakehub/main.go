// Fakehub runs the tests' hub of models as a process of its own:
//
//	go run ./tools/fakehub -dir testdata/models
//
// It prints its address on standard output and serves until its standard input ends. internal/fakehub says what it does and
// how it is commanded.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lmcaddy/lmcaddy/internal/fakehub"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "the `address` to listen at; files are sent from another port")
	dir := flag.String("dir", "", "a `folder` of <publisher>/<repository>/<files> to serve")
	flag.Parse()
	if err := fakehub.Main(*listen, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "fakehub:", err)
		os.Exit(1)
	}
}
