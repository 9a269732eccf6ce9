// Package mlxlm runs mlx_lm.server, which loads models in the MLX format. Its wire format is in package translate/mlxlm.
package mlxlm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
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
		Estimate: estimate,
		Fixed:    fixed,
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

func estimate(s *schedule.Spec) (catalog.Memory, error) {
	return catalog.Estimate(&s.Model, catalog.Shape{ContextLength: s.ContextLength, Parallel: s.Parallel})
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
