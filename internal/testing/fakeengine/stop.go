package fakeengine

import (
	"bufio"
	"os"
	"os/signal"
	"syscall"
)

// exitLine is the line on standard input that asks for a graceful stop.
const exitLine = "cmd_router_to_child:exit"

// prepareSignals is called before the load, when SIGTERM and SIGINT still kill, unless the script ignores them. A broken
// output pipe must not kill: the real server keeps serving.
func (p *process) prepareSignals(s *Script) {
	signal.Ignore(syscall.SIGPIPE)
	if s.Stop.IgnoreTerm {
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	}
}

// watchSignals handles SIGTERM and SIGINT from now on.
func (p *process) watchSignals() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for count := 1; ; count++ {
			reason := "SIGTERM"
			if <-signals == os.Interrupt {
				reason = "SIGINT"
			}
			p.interrupted(p.script().Stop, reason, count)
		}
	}()
}

// interrupted handles a signal. In child mode the real server freezes requests in flight, closes its listener and lives on,
// so later connections are refused. Both happen before the event is recorded: after it, nothing more is sent or accepted.
func (p *process) interrupted(stop Stop, reason string, count int) {
	ends := !stop.IgnoreTerm && (!p.routed || stop.TermWorks)
	if ends || !stop.IgnoreTerm && p.server.inFlight() > 0 {
		p.freeze()
	}
	if !ends && !stop.IgnoreTerm {
		p.server.hangUp()
	}
	p.Tell(Event{Kind: Asked, Reason: reason})
	switch {
	case !ends:
	case count > 1:
		logf('W', "Received second interrupt, terminating immediately.")
		p.Exit(1, "second "+reason)
	default:
		go p.stopGracefully(reason)
	}
}

// watchInput reads the router's lines. The load is over by now: during it the real server doesn't notice its end.
func (p *process) watchInput() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() != exitLine {
			continue
		}
		ends := !p.script().Stop.IgnoreExit
		if ends {
			p.freeze()
		}
		p.Tell(Event{Kind: Asked, Reason: "exit"})
		if ends {
			logf('I', "srv    operator(): exit command received, exiting...")
			go p.stopGracefully("exit")
		}
	}
	p.Tell(Event{Kind: Asked, Reason: "EOF"})
	if p.script().Stop.IgnoreEOF {
		return
	}
	logf('I', "srv    operator(): EOF on stdin detected, forcing shutdown...")
	if p.server.inFlight() > 0 {
		p.die(Death{Signal: int(syscall.SIGSEGV)}, "EOF")
	}
	p.Exit(1, "EOF")
}

// stopGracefully ends with status 0 once no request is in flight. Those in flight are frozen, and end when their clients
// disconnect.
func (p *process) stopGracefully(reason string) {
	p.freeze()
	p.server.drain()
	logf('I', "srv    operator(): operator(): cleaning up before exit...")
	p.Exit(0, reason)
}

// freeze stops all generation: the clients get neither data nor an end.
func (p *process) freeze() { p.stopOnce.Do(func() { close(p.stopping) }) }

// die ends the process as the script says.
func (p *process) die(d Death, reason string) { p.Die(d, p.args.model, reason) }
