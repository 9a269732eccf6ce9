// Package mlxlm runs mlx_lm.server, which loads models in the MLX format. Its wire format is in package translate/mlxlm.
package mlxlm

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Engine returns the description of mlx_lm.server.
func Engine() process.Engine {
	return process.Engine{
		Name:      "mlx_lm",
		Formats:   []catalog.Format{catalog.FormatMLX},
		Find:      func(s process.Setup) (string, error) { found, err := find(s); return found.Path, err },
		New:       func(s process.Setup) process.Program { return &Process{setup: s} },
		Command:   true,
		NoSandbox: "Python and whatever else its command starts need files and programs that the sandbox can't know",
		Runs:      runs,
		Choices: func(*catalog.Model) process.Choices {
			return process.Choices{ContextLength: true, Parallel: true, PromptCache: true}
		},
		Estimate: func(s *schedule.Spec) (catalog.Memory, error) {
			return catalog.Estimate(&s.Model, catalog.Shape{ContextLength: s.ContextLength, Parallel: s.Parallel})
		},
		Fixed: fixed,
	}
}

// find returns what is started: the configured command, or else the selected runtime, or else the server on PATH.
func find(s process.Setup) (runtimes.Runtime, error) {
	var executable string
	command := s.Command()
	if len(command) > 0 {
		executable = command[0]
	}
	found, err := runtimes.Open(s.Runtimes, s.Log).Find(runtimes.MLXLM, executable)
	if err == nil && len(command) > 0 {
		found.Args = command[1:]
	}
	return found, err
}

// runs refuses models that don't generate text, and those that bring a program: the server would run it, in some versions even
// without being told to trust it.
func runs(m *catalog.Model) error {
	switch {
	case m.Type != catalog.TypeLLM:
		return fmt.Errorf("The model %s is an embedding model, which mlx_lm.server can't run: use one in the GGUF format.", m.Key)
	case m.HasCode:
		return fmt.Errorf(
			"The model %s brings a program of its own, which isn't run: use a model that mlx_lm.server knows by itself.", m.Key)
	default:
		return nil
	}
}

// units are the units of sizes in arguments.
var units = map[string]float64{"": 1, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9}

// fixed returns the prompt cache size that the last such argument sets, and the arguments for the chat template.
func fixed(args []string) (f process.Fixed) {
	for i, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(name, "--chat-template") {
			f.Template += name + " " + value + "\n"
		}
		if name != "--prompt-cache-bytes" {
			continue
		}
		digits := strings.TrimRight(strings.ToUpper(value), "MGB")
		n, err := strconv.ParseFloat(digits, 64)
		if unit, known := units[strings.ToUpper(value[len(digits):])]; err == nil && known && n >= 0 {
			f.PromptCache = new(int64(min(n*unit, 1<<60)))
		}
	}
	return f
}

const (
	// mostPrompts is how many prompts are evaluated together at most, which is the server's default.
	mostPrompts = 8
	// leastCaches is how many prompts are cached at least. It is the server's default. Their memory is bounded separately.
	leastCaches = 10
	// noOrigin keeps web pages from reading what the server answers, which needs no key. By default it lets all of them do so.
	noOrigin = "none"
	// topK is the default top_k. It must be less than the number of tokens that the model knows.
	topK = 40
)

// Command returns the command line of a server for one model.
func (p *Process) Command(l process.Launch, b process.Build) process.Cmd {
	args := slices.Clone(b.Args)
	add := func(flag, value string) {
		if _, ok := b.Flags[flag]; ok || b.Flags == nil {
			args = append(args, flag, value)
		}
	}
	add("--allowed-origins", noOrigin)
	add("--max-tokens", strconv.Itoa(math.MaxInt32)) // the default is 512
	add("--decode-concurrency", strconv.Itoa(l.Parallel))
	add("--prompt-concurrency", strconv.Itoa(min(l.Parallel, mostPrompts)))
	if l.Private {
		add("--prompt-cache-size", "0") // prompts can't be cached for each owner
	} else {
		add("--prompt-cache-size", strconv.Itoa(max(leastCaches, 4*l.Parallel)))
		// The server counts those that it is working on, too, for which the estimate of the model's memory has room.
		working := l.Memory - l.Reserve - l.Model.SizeBytes - schedule.RuntimeMemory
		if bytes := l.PromptCache + max(0, working); bytes > 0 {
			add("--prompt-cache-bytes", strconv.FormatInt(bytes, 10))
		}
	}
	// llama-server's defaults. The server's own are those of greedy sampling.
	add("--temp", "0.8")
	add("--top-p", "0.95")
	add("--min-p", "0.05")
	if l.Model.Vocabulary == 0 || l.Model.Vocabulary > topK {
		add("--top-k", strconv.Itoa(topK))
	}
	// The last of several counts. What the operator adds may change all but the model and the address: the server needs no key.
	args = append(args, l.Args...)
	args = append(args, "--model", l.Model.Path, "--host", "127.0.0.1", "--port", strconv.Itoa(l.Port))
	return process.Cmd{Path: b.Path, Args: args, Env: environment(), Guard: true}
}

// environment returns the environment of a server. PATH is kept, for the interpreters of scripts and for the compiler that MLX
// uses where it computes on the processor.
func environment() []string {
	env := slices.DeleteFunc(engine.Environment(false), func(v string) bool { return strings.HasPrefix(strings.ToUpper(v), "PATH=") })
	return append(env,
		"PATH="+os.Getenv("PATH"),
		"PYTHONUNBUFFERED=1",
		"HF_HUB_OFFLINE=1", // a model that isn't there is an error, not a download
		"TRANSFORMERS_OFFLINE=1",
		"HF_HUB_DISABLE_TELEMETRY=1",
		"DO_NOT_TRACK=1",
	)
}
