// Fakehub runs the fake model hub of the tests as a process:
//
//	go run ./tools/fakehub -dir testdata/models
//
// It prints its address on standard output and serves until its standard input ends. See internal/testing/fakehub.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

func main() {
	var p fakehub.Process
	flag.StringVar(&p.Address, "listen", "127.0.0.1:0", "the `address` to listen at; files are sent from another port")
	flag.StringVar(&p.Dir, "dir", "", "a `folder` of <publisher>/<repository>/<files> to serve")
	flag.StringVar(&p.Fault, "fault", "", "a fault that there is from the start, in `JSON`")
	flag.StringVar(&p.Record, "record", "", "a `file` to which each request for a file is added as it begins")
	flag.Parse()
	if err := p.Main(); err != nil {
		fmt.Fprintln(os.Stderr, "fakehub:", err)
		os.Exit(1)
	}
}
