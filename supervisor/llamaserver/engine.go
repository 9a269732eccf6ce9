// Package llamaserver runs llama.cpp's llama-server, which loads models in the GGUF format. Its wire format is in package
// translate/llamaserver.
package llamaserver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Engine returns the description of llama-server.
func Engine() process.Engine {
	return process.Engine{
		Name:    "llama_server",
		Formats: []catalog.Format{catalog.FormatGGUF},
		Find:    find,
		New: func(s process.Setup) process.Program {
			return &Process{
				Locate: func() (string, error) { return find(s) }, Runtimes: s.Runtimes,
				TooOld: func(version string) string {
					return runtimes.Open(s.Runtimes, s.Log).TooOld(runtimes.LlamaCpp, s.Path(), version)
				},
			}
		},
		// An embedding model processes each input in one batch and caches nothing, so it has fewer choices.
		Choices: func(m *catalog.Model) process.Choices {
			isChat := m.Type == catalog.TypeLLM
			can := process.Choices{
				ContextLength: true, Parallel: true, Devices: true,
				BatchSize: isChat, FlashAttention: isChat, OffloadKV: isChat, Draft: isChat, PromptCache: isChat,
				Experts: isChat && m.Experts > 0,
			}
			if isChat {
				can.LeastBatch = 2 // it tries two tokens at a time when it has loaded a model, and aborts if the batch is of one
			}
			return can
		},
		Estimate: func(s *schedule.Spec) (catalog.Memory, error) {
			shape := catalog.Shape{
				ContextLength: s.ContextLength, Parallel: s.Parallel, BatchSize: s.BatchSize, ExpertsUsed: s.Experts,
				NoFlashAttention: s.FlashAttention == schedule.Off,
			}
			if s.Model.Type == catalog.TypeEmbedding {
				shape.BatchSize, shape.MicroBatch = s.ContextLength, s.ContextLength
			}
			return catalog.Estimate(&s.Model, shape)
		},
		Fixed:          fixed,
		ContextStep:    256,
		MaxCheckpoints: 32, // llama-server's default
	}
}

func find(s process.Setup) (string, error) {
	found, err := runtimes.Open(s.Runtimes, s.Log).Find(runtimes.LlamaCpp, s.Path())
	return found.Path, err
}

// templating matches the names of arguments that decide how prompts are made. Most have a value.
var templating = regexp.MustCompile(`^(--chat-template.*|--(no-)?jinja|--(no-)?prefill-assistant|-rea|--reasoning.*)$`)

// fixed reports what arguments override. Of the prompt cache's sizes, the last counts.
func fixed(args []string) (f process.Fixed) {
	for i, arg := range args {
		switch nameOf(arg) {
		case "-c", "--ctx-size":
			f.Context = true
		case "--kv-unified-per-slot", "-np", "--parallel", "-kvu", "--kv-unified":
			f.Context, f.Slots = true, true
		}
		f.Placement = f.Placement || slices.Contains(placing, nameOf(arg))
		if templating.MatchString(nameOf(arg)) {
			f.Template += strings.Join(args[i:min(i+2, len(args))], " ") + "\n"
		}
		if (arg == "-cram" || arg == "--cache-ram") && i+1 < len(args) && args[i+1] != "" {
			f.PromptCache = new(mebibytes(args[i+1]))
		}
	}
	return f
}

// mebibytes parses a size in MiB, as in arguments, into bytes; 0 if it is invalid.
func mebibytes(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return max(0, n) << 20
}
