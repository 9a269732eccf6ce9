package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

const (
	// lastLines is how many lines of a server's standard error are in the error of its end.
	lastLines = 8
	// maxWaiting is how many bytes may wait for a server that doesn't read.
	maxWaiting = 16 << 20
)

// startError is a program that didn't come up.
type startError struct {
	err   error
	lines []string // the last that it wrote on its standard error
}

func (e *startError) Error() string {
	if len(e.lines) == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("%v; its last words: %s", e.err, strings.Join(e.lines, " | "))
}

func (e *startError) Unwrap() error { return e.err }

// overStdio starts a program and makes the handshake with it.
func (c *connector) overStdio(ctx context.Context, t target) (*link, error) {
	limit, cancel := context.WithTimeoutCause(ctx, c.startup, &timeoutError{c.startup})
	defer cancel()
	log := c.log.With("server", t.Label)
	words := new(lastWords)
	process, err := child.Start(child.Options{
		Path: t.Command, Args: t.Args, Env: environ(t.Env), Dir: t.Dir, Journal: c.journal, Log: log,
		Line: func(line string) {
			words.add(line)
			log.Info("an MCP server says", "line", line)
		},
	})
	if err != nil {
		return nil, &startError{err: err}
	}
	l := newLink(ctx, log, c.timeout)
	l.shut = process.Stop
	input := newPatientWriter(process.Stdin, func() { l.lose(errStarve) })
	output := newLineReader(process.Stdout, l.budget, func(err error) {
		if errors.Is(err, errFlood) {
			l.lose(err)
			return
		}
		l.lose(&endedError{})
	})
	tap := stdioTap{transport.NewIO(output, input, io.NopCloser(strings.NewReader("")))}
	l.use(client.NewClient(tap, client.WithLegacyProtocolOnly()))
	err = c.begin(limit, l)
	if as[*refusedError](err)() {
		// It doesn't know the handshake, so it speaks the newest protocol.
		err = c.again(limit, t, l, tap)
	}
	if err != nil {
		l.close()
		<-process.Done()
		if exit := process.Err(); exit != nil && as[*endedError](err)() {
			err = exit
		}
		return nil, &startError{err: err, lines: words.get()}
	}
	return l, nil
}
