// Package llamaserver runs llama.cpp's llama-server, which loads models of the GGUF format. What it is sent and answers is
// translate's.
package llamaserver

import (
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// Engine describes llama-server.
func Engine() supervisor.Engine {
	return supervisor.Engine{
		Name:           "llama_server",
		Formats:        []catalog.Format{catalog.FormatGGUF},
		Find:           find,
		New:            newProcess,
		Choices:        choices,
		Estimate:       estimate,
		Fixed:          fixed,
		ContextStep:    256,
		MaxCheckpoints: 32, // its own choice
	}
}

func find(s supervisor.Setup) (string, error) {
	found, err := runtimes.Open(s.Runtimes, s.Log).Find(s.Path())
	return found.Path, err
}

func newProcess(s supervisor.Setup) supervisor.Process {
	return &Process{Locate: func() (string, error) { return find(s) }, Runtimes: s.Runtimes}
}

// choices: an embedding model takes each input in one batch, and keeps nothing of it.
func choices(m *catalog.Model) supervisor.Choices {
	isChat := m.Type == catalog.TypeLLM
	return supervisor.Choices{
		ContextLength: true, Parallel: true,
		BatchSize: isChat, FlashAttention: isChat, OffloadKV: isChat, Draft: isChat, PromptCache: isChat,
		Experts: isChat && m.Experts > 0,
	}
}

func estimate(s *supervisor.Spec) (catalog.Memory, error) {
	shape := catalog.Shape{
		ContextLength: s.ContextLength, Parallel: s.Parallel, BatchSize: s.BatchSize, ExpertsUsed: s.Experts,
		NoFlashAttention: s.FlashAttention == supervisor.Off,
	}
	if s.Model.Type == catalog.TypeEmbedding {
		shape.BatchSize, shape.MicroBatch = s.ContextLength, s.ContextLength
	}
	return s.Model.Estimate(shape)
}

// fixed finds the arguments that give a context another length than ours do, and the last that gives the prompt cache a
// size.
func fixed(args []string) (f supervisor.Fixed) {
	for i, arg := range args {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "-c", "--ctx-size", "--kv-unified-per-slot", "-np", "--parallel", "-kvu", "--kv-unified":
			f.Context = true
		}
		if (arg == "-cram" || arg == "--cache-ram") && i+1 < len(args) && args[i+1] != "" {
			f.PromptCache = new(mebibytes(args[i+1]))
		}
	}
	return f
}

// mebibytes is a size as arguments have it; 0 if it isn't one.
func mebibytes(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return max(0, n) << 20
}
