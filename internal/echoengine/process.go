package echoengine

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/supervisor"
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

// process is the engine as a process. It listens on a port, requires no key, can't be asked about its health or its work, and
// ends when its standard input closes.
type process struct{ setup supervisor.Setup }

// Probe doesn't ask: there is one version.
func (p *process) Probe(context.Context) (supervisor.Build, error) {
	path, err := find(p.setup)
	return supervisor.Build{Engine: "echo", Version: "v7", Path: path}, err
}

func (p *process) Command(l supervisor.Launch, b supervisor.Build) supervisor.Cmd {
	args := []string{childWord, "--ear", net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port)), "--model", l.Model.Path, "--context", strconv.Itoa(l.ContextLength)}
	return supervisor.Cmd{Path: b.Path, Args: append(args, l.Args...), Env: engine.Environment(b.Script)}
}

func (p *process) Line(line string) []schedule.Signal {
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

func (p *process) Level(string) slog.Level { return slog.LevelDebug }

func (p *process) Stop() []supervisor.StopStep {
	return []supervisor.StopStep{{Action: supervisor.StopCloseInput, Wait: 5 * time.Second}}
}
