package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// LlamaServer is llama.cpp's llama-server as a process. It is run in the mode in which llama.cpp's own router runs its
// children: it then tells its state on standard output, and ends when standard input closes. A build that doesn't know
// the mode is read by its log.
type LlamaServer struct {
	// Locate finds the executable. It is asked for each launch, since what is installed may change.
	Locate func() (string, error)

	mu     sync.Mutex
	probed map[string]probedBuild // by path
}

type probedBuild struct {
	build Build
	size  int64
	at    time.Time
}

// probeTimeout bounds how long the engine may take to say its version; it takes 20 ms.
const probeTimeout = 20 * time.Second

// Probe asks the executable for its version and its flags, once for each state of the file.
func (e *LlamaServer) Probe(ctx context.Context) (Build, error) {
	path, err := e.Locate()
	if err != nil {
		return Build{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Build{}, fmt.Errorf("llama-server: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.probed[path]; ok && p.size == info.Size() && p.at.Equal(info.ModTime()) {
		return p.build, nil
	}
	version, err := ask(ctx, path, "--version")
	if err != nil {
		return Build{}, err
	}
	help, err := ask(ctx, path, "--help")
	if err != nil {
		return Build{}, err
	}
	build := Build{Engine: "llama.cpp", Version: cmp.Or(engine.LlamaVersion(version), "unknown"), Path: path, Flags: llamaFlags(help)}
	if e.probed == nil {
		e.probed = map[string]probedBuild{}
	}
	e.probed[path] = probedBuild{build, info.Size(), info.ModTime()}
	return build, nil
}

func ask(ctx context.Context, path, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := engine.Ask(ctx, path, flag)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, flag, err)
	}
	return out, nil
}

// flagNames are the names of a flag, at the beginning of a line of the help.
var flagNames = regexp.MustCompile(`^(?:--?[a-zA-Z][\w-]*,?\s+)+`)

// llamaFlags finds the flags in the help: they begin its lines, several names of one separated by commas. The
// help also has lines for those that were removed; these don't count.
func llamaFlags(help string) map[string]bool {
	flags := map[string]bool{}
	for line := range strings.Lines(help) {
		if strings.Contains(line, "has been removed") {
			continue
		}
		for _, name := range strings.FieldsFunc(flagNames.FindString(line), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
			flags[name] = true
		}
	}
	return flags
}

// Command is a llama-server for one model. Flags that moved between versions are chosen by what the build knows.
func (e *LlamaServer) Command(l Launch, b Build) Cmd {
	args := []string{
		"-m", l.Model.Path,
		"--host", "127.0.0.1",
		"--port", strconv.Itoa(l.Port),
		"-a", l.Instance,
		"-c", strconv.Itoa(l.ContextLength * l.Parallel),
		"-np", strconv.Itoa(l.Parallel),
	}
	for _, flag := range []string{"--no-ui", "--no-webui"} {
		if b.Flags[flag] {
			args = append(args, flag)
			break
		}
	}
	if b.Flags["--offline"] {
		args = append(args, "--offline")
	}
	if l.Model.Projector != "" {
		args = append(args, "--mmproj", l.Model.Projector)
	}
	env := append(engine.Environment(),
		"LLAMA_API_KEY="+l.APIKey,    // in the environment, which others can't read, not in the arguments, which they can
		"LLAMA_SERVER_ROUTER_PORT=0", // any value will do
		"GGML_NO_BACKTRACE=1",        // a failed assertion would start a debugger
	)
	return Cmd{Path: b.Path, Args: append(args, l.Args...), Env: env}
}

const (
	llamaState = "cmd_child_to_router:state:"
	llamaExit  = "cmd_router_to_child:exit\n"
)

// Line reads the state lines, and in the log what decides about the load.
func (e *LlamaServer) Line(line string) []Signal {
	if state, ok := strings.CutPrefix(line, llamaState); ok {
		return llamaStateSignals(state)
	}
	switch {
	case strings.Contains(line, "listening on http"):
		return []Signal{{Kind: SignalReady}} // after the load, in all versions
	case strings.Contains(line, "couldn't bind"):
		return []Signal{{Kind: SignalPortTaken}, {Kind: SignalTrouble, Text: "its port was taken by another program"}}
	}
	for _, mark := range []string{"error loading model: ", "gguf_init_from_reader: ", "gguf_init_from_file: ", "error: invalid argument: ", "GGML_ASSERT", "insufficient memory", "error while handling"} {
		if i := strings.Index(line, mark); i >= 0 {
			return []Signal{{Kind: SignalTrouble, Text: strings.TrimPrefix(line[i:], "error loading model: ")}}
		}
	}
	return nil
}

func llamaStateSignals(state string) []Signal {
	switch s := gjson.Parse(state); s.Get("state").Str {
	case "ready":
		return []Signal{{Kind: SignalReady}}
	case "loading":
		p := s.Get("payload")
		stages := p.Get("stages").Array()
		done := 0.0
		for i, stage := range stages {
			if stage.Str == p.Get("current").Str {
				done = (float64(i) + p.Get("value").Num) / float64(len(stages))
			}
		}
		return []Signal{{Kind: SignalProgress, Progress: done}}
	default:
		return []Signal{{}} // said by the protocol, of no use to us
	}
}

// Stop asks over the protocol, then closes standard input. SIGTERM is no use: in this mode an idle llama-server ignores it,
// and a busy one hangs.
func (e *LlamaServer) Stop() []StopStep {
	return []StopStep{
		{Action: StopWrite, Text: llamaExit, Wait: 500 * time.Millisecond},
		{Action: StopCloseInput, Wait: 500 * time.Millisecond},
	}
}
