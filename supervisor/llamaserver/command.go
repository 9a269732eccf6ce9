package llamaserver

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Command returns the command line of a llama-server for one model. If a flag differs between versions, the build's help
// decides.
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
