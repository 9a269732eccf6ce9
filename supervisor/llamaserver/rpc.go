package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// How long a worker may take before a launch.
const (
	reachTimeout = 3 * time.Second  // to accept a connection
	freeTimeout  = 10 * time.Second // to have time for it: the engine that it has computed for may just have ended
)

// Prepare finds the addresses of the workers, and checks that each of them can be reached and computes for nobody else. llama-server
// would end itself without saying why, or wait for ever.
func (p *Process) Prepare(ctx context.Context, l *supervisor.Launch) error {
	if err := p.canDraft(ctx, l.Draft); err != nil {
		return err
	}
	if len(l.RPC) == 0 {
		return nil
	}
	l.Workers = make([]string, len(l.RPC))
	results := make(chan error, len(l.RPC))
	for i, address := range l.RPC {
		go func() {
			var err error
			l.Workers[i], err = findWorker(ctx, address, freeTimeout)
			results <- err
		}()
	}
	var failures []string
	for range l.RPC {
		if err := <-results; err != nil {
			failures = append(failures, err.Error())
		}
	}
	if failures != nil {
		slices.Sort(failures)
		return errors.New(strings.Join(failures, "; "))
	}
	return nil
}

// canDraft returns an error if the engine doesn't know how a drafter works. It would end itself with its help.
func (p *Process) canDraft(ctx context.Context, draft *catalog.Model) error {
	if draft == nil || draft.Drafting == "" {
		return nil
	}
	build, err := p.Probe(ctx)
	if err != nil || strings.Contains(build.Flags["--spec-type"], "draft-"+draft.Drafting) {
		return err
	}
	return errors.New(withSentence(fmt.Sprintf("the engine can't draft with %s, which is for draft-%s", draft.Key, draft.Drafting), p.tooOld()))
}

// findWorker returns the IPv4 address of a worker that is free, or will be before its patience ends. The engine can't ask for it by itself in its sandbox.
func findWorker(ctx context.Context, address string, patience time.Duration) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	resolving, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(resolving, "ip4", host)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("the worker %s can't be found, because its name has no IPv4 address here: correct the name, or give an address", address)
	}
	at := net.JoinHostPort(found[0].Unmap().String(), port)
	return at, checkWorker(ctx, address, at, patience)
}

// checkWorker connects to a worker and sends a byte that begins no message. One that is free closes the connection at once, without an
// answer; one that is busy does so later. Nothing else may be sent to a worker that may be busy: it may be ended by SIGPIPE when it
// answers somebody who has given up.
func checkWorker(ctx context.Context, name, at string, patience time.Duration) error {
	dialer := net.Dialer{Timeout: reachTimeout}
	conn, err := dialer.DialContext(ctx, "tcp4", at)
	switch {
	case openfiles.AreExhausted(err):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf(`no worker listens at %s: start it there with "lmcaddy rpc-worker", or correct the address`, name)
	case err != nil:
		return fmt.Errorf("the worker %s can't be reached (%w): see whether its machine is on, whether a firewall is in the way, and whether other programs use the worker", name, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = conn.Write([]byte{0xff}); err == nil {
		var n int
		if n, err = conn.Read(make([]byte, 1)); n > 0 {
			return fmt.Errorf("what listens at %s is no worker: correct the address", name)
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("the worker %s doesn't answer: it computes for another program, hangs, or isn't a worker of llama.cpp. A worker serves one program at a time: end the other one, restart the worker, or correct the address", name)
	}
}

// onWorkers returns the arguments for a model on several machines. How it is spread is left to llama-server, which asks the workers how
// much memory they have and keeps the rest here; an older one is told to keep nothing here.
func onWorkers(l *supervisor.Launch, known flags) []string {
	if len(l.Workers) == 0 {
		return nil
	}
	args := []string{"--rpc", strings.Join(l.Workers, ",")}
	if l.Model.Projector != "" && known.has("--no-mmproj-offload") {
		args = append(args, "--no-mmproj-offload")
	}
	if !known.has("--fit") {
		args = append(args, "-ngl", "999")
	}
	return args
}

// ofWorkers returns the meaning of a line about workers; nil: it has none.
func ofWorkers(line string) []supervisor.Signal {
	switch {
	case strings.Contains(line, "Remote RPC server crashed or returned malformed response"):
		return []supervisor.Signal{{Kind: supervisor.SignalDead, Text: "a worker has ended, or its version doesn't fit this engine"}}
	case strings.Contains(line, "RPC server version mismatch"):
		return []supervisor.Signal{{Kind: supervisor.SignalTrouble, Text: "a worker's version doesn't fit this engine: install the same release of llama.cpp on all machines"}}
	case strings.Contains(line, "Failed to find RPC backend"):
		return []supervisor.Signal{{Kind: supervisor.SignalTrouble, Text: `this build of llama-server can't use workers: get one that can with "lmcaddy runtime get llama.cpp"`}}
	default:
		return nil
	}
}
