package echoengine

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// What the process prints. It reports its state by lines that begin with prefix; the others are for people.
const (
	prefix    = "echo: "
	sayLoaded = prefix + "loaded " // with a percentage
	sayReady  = prefix + "listening"
	sayTaken  = prefix + "address taken"
	sayFailed = prefix + "failed, " // with the reason
)

// echo is the engine as a program. It listens on a port, requires no key, can't be asked about its health or its work, and
// ends when its standard input closes.
type echo struct{ setup process.Setup }

// Probe doesn't ask: there is one version.
func (p *echo) Probe(context.Context) (process.Build, error) {
	path, err := find(p.setup)
	return process.Build{Engine: "echo", Version: "v7", Path: path}, err
}

func (p *echo) Command(l process.Launch, b process.Build) process.Cmd {
	args := []string{childWord, "--ear", net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port)), "--model", l.Model.Path, "--context", strconv.Itoa(l.ContextLength)}
	return process.Cmd{Path: b.Path, Args: append(args, l.Args...), Env: engine.Environment(b.Script)}
}

func (p *echo) Line(line string) []schedule.Signal {
	if text, ok := strings.CutPrefix(line, sayFailed); ok {
		return []schedule.Signal{{Kind: schedule.SignalTrouble, Text: text}}
	}
	if percent, ok := strings.CutPrefix(line, sayLoaded); ok {
		n, _ := strconv.Atoi(percent)
		return []schedule.Signal{{Kind: schedule.SignalProgress, Progress: float64(n) / 100}}
	}
	switch line {
	case sayReady:
		return []schedule.Signal{{Kind: schedule.SignalReady}}
	case sayTaken:
		return []schedule.Signal{{Kind: schedule.SignalPortTaken}}
	default:
		return nil
	}
}

func (p *echo) Level(string) slog.Level { return slog.LevelDebug }

func (p *echo) Stop() []process.StopStep {
	return []process.StopStep{{Action: process.StopCloseInput, Wait: 5 * time.Second}}
}
