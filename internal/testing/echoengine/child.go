package echoengine

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// childWord is the first argument of the engine's process.
const childWord = "echo-engine"

// Path is the executable to configure: that of the test itself, whose TestMain has to call [MainIfChild] first.
func Path() (string, error) { return os.Executable() }

// MainIfChild runs the engine and ends the process, if the process was started as the engine's.
func MainIfChild() {
	if len(os.Args) < 2 || os.Args[1] != childWord {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		syscall.Exit(0)
	}()
	fmt.Println(sayFailed + run(os.Args[2:]).Error())
	syscall.Exit(1)
}

// run returns only if the engine can't run.
func run(args []string) error {
	flags := flag.NewFlagSet(childWord, flag.ContinueOnError)
	s := &server{}
	ear, model := flags.String("ear", "", "`address` to listen on"), flags.String("model", "", "`file`")
	flags.IntVar(&s.context, "context", 0, "longest prompt, in `words`")
	flags.StringVar(&s.greeting, "greeting", "", "`text` that answers begin with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Println(sayLoaded + "50")
	if _, err := read(*model); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *ear)
	if err != nil {
		fmt.Println(sayTaken)
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+generatePath, s.generate)
	mux.HandleFunc("POST "+measurePath, s.measure)
	fmt.Println(sayReady)
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener)
}
