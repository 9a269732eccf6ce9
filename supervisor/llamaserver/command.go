// Package llamaserver runs llama.cpp's llama-server, which loads models in the GGUF format. Its wire format is in package
// translate/llamaserver.
package llamaserver

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Command returns the command line of a llama-server for one model. If a flag differs between versions, the build's help decides.
func (p *Process) Command(l process.Launch, b process.Build) process.Cmd {
	known := flags(b.Flags)
	listen := []string{"--host", "127.0.0.1", "--port", strconv.Itoa(l.Port)}
	if l.Socket != "" {
		listen = []string{"--host", l.Socket}
	}
	args := append([]string{"-m", l.Model.Path}, listen...)
	args = append(args,
		"-a", l.Instance,
		"-c", strconv.Itoa(l.ContextLength*l.Parallel),
		"-np", strconv.Itoa(l.Parallel),
	)
	if flag := known.first("--no-ui", "--no-webui"); flag != "" {
		args = append(args, flag)
	}
	if known.has("--offline") {
		args = append(args, "--offline")
	}
	if strings.Contains(known["-lv"], "4: trace") {
		args = append(args, "-lv", "4") // logs the memory that it takes, and whether flash attention is on
	}
	if known.has("--cache-ram") {
		args = append(args, "--cache-ram", strconv.FormatInt(l.PromptCache>>20, 10))
	}
	if l.Checkpoints > 0 {
		if flag := known.first("--ctx-checkpoints", "--swa-checkpoints"); flag != "" {
			args = append(args, flag, strconv.Itoa(l.Checkpoints))
		}
	}
	if l.States != "" && known.has(savePath) {
		args = append(args, savePath, l.States)
	}
	if l.Model.Projector != "" {
		args = append(args, "--mmproj", l.Model.Projector)
	}
	if len(l.Adapters) > 0 && known.has(unapplied) {
		for i := range l.Adapters {
			args = append(args, "--lora", l.Adapters[i].Path)
		}
		args = append(args, unapplied)
	}
	args = append(args, onGPUs(&l, known)...)
	args = append(args, kindArgs(l.Spec)...)
	args = append(args, tuning(l.Spec, known)...)
	env := append(engine.Environment(b.Script),
		"LLAMA_API_KEY="+l.APIKey,    // other users can read arguments, but not the environment
		"LLAMA_SERVER_ROUTER_PORT=0", // any value will do
		"GGML_NO_BACKTRACE=1",        // a failed assertion would start a debugger
	)
	return process.Cmd{
		Path: b.Path, Args: append(args, l.Args...), Env: env,
		Needs: sandbox.Rules{Connect: machines(slices.Concat(args, l.Args))},
	}
}

// unapplied has adapters loaded for those requests that choose them.
const unapplied = "--lora-init-without-apply"

// kindArgs returns the arguments for a model that doesn't chat. Such a model processes each input in one physical batch.
func kindArgs(s *schedule.Spec) []string {
	if s.Model.Type != catalog.TypeEmbedding {
		return nil
	}
	endpoint := "--embeddings"
	if s.Model.Reranker {
		endpoint = "--reranking"
	}
	batch := strconv.Itoa(s.ContextLength)
	args := []string{endpoint, "-b", batch, "-ub", batch}
	pooling := s.Model.Pooling
	if pooling == "" || pooling == catalog.PoolingNone {
		pooling = catalog.PoolingMean // without pooling, there is no vector for a text
	}
	return append(args, "--pooling", string(pooling)) // which the file may lack
}

// tuning returns the arguments for values that differ from the engine's defaults.
func tuning(s *schedule.Spec, known flags) []string {
	var args []string
	if s.BatchSize > 0 && s.Model.Type == catalog.TypeLLM {
		args = append(args, "-b", strconv.Itoa(s.BatchSize), "-ub", strconv.Itoa(min(s.BatchSize, microBatch)))
	}
	switch takesValue := strings.Contains(known["-fa"], "on|off"); { // older builds can only switch it on
	case s.FlashAttention == schedule.On && !takesValue:
		args = append(args, "-fa")
	case s.FlashAttention == schedule.On:
		args = append(args, "-fa", "on")
	case s.FlashAttention == schedule.Off && takesValue:
		args = append(args, "-fa", "off")
	}
	if s.OffloadKV == schedule.Off {
		args = append(args, "--no-kv-offload")
	}
	if s.Experts > 0 {
		args = append(args, "--override-kv", fmt.Sprintf("%s.expert_used_count=int:%d", s.Model.Architecture, s.Experts))
	}
	if s.Draft != nil {
		args = append(args, "-md", s.Draft.Path)
		if known.has("--spec-type") { // older builds draft whenever they have a draft model
			args = append(args, "--spec-type", "draft-"+cmp.Or(s.Draft.Drafting, "simple"))
		}
	}
	if s.SelfDraft != "" {
		args = append(args, "--spec-type", s.SelfDraft)
	}
	return args
}

// microBatch is llama-server's default physical batch size, in tokens.
const microBatch = 512

// machines returns the ports of llama.cpp's RPC servers on other machines in the arguments, as in "--rpc
// 10.0.0.7:50052,10.0.0.8:50052": the engine may connect to them.
func machines(args []string) []int {
	var all []int
	for i, arg := range args {
		if arg != "--rpc" || i+1 == len(args) {
			continue
		}
		for address := range strings.SplitSeq(args[i+1], ",") {
			_, port, err := net.SplitHostPort(address)
			if n, bad := strconv.Atoi(port); err == nil && bad == nil && n > 0 && n < 1<<16 {
				all = append(all, n)
			}
		}
	}
	return all
}

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
				BatchSize: isChat, FlashAttention: isChat, OffloadKV: isChat, Draft: isChat, Adapters: isChat, PromptCache: isChat,
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
			memory, err := catalog.Estimate(&s.Model, shape)
			if s.SelfDraft == schedule.HeadsDraft { // they have a context of their own
				memory.KVCache += memory.KVCache * int64(s.Model.Heads) / int64(max(1, memory.Layers))
				memory.Compute *= 2
			}
			return memory, err
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

// drafting matches the names of arguments by which an operator decides what drafts.
var drafting = regexp.MustCompile(`^(-md|--model-draft|--spec-(type|default|draft-model))$`)

// fixed reports what arguments override. Of the prompt cache's sizes, the last counts.
func fixed(args []string) (f process.Fixed) {
	for i, arg := range args {
		switch nameOf(arg) {
		case "-c", "--ctx-size":
			f.Context = true
		case "--kv-unified-per-slot", "-np", "--parallel", "-kvu", "--kv-unified":
			f.Context, f.Slots = true, true
		}
		f.Adapters = f.Adapters || strings.HasPrefix(nameOf(arg), "--lora")
		f.Draft = f.Draft || drafting.MatchString(nameOf(arg))
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
