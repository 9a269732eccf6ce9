package supervisor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// Command is a llama-server for one model. Flags that moved between versions are chosen by what the build knows.
func (e *LlamaServer) Command(l Launch, b Build) Cmd {
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
	if flag := b.first("--no-ui", "--no-webui"); flag != "" {
		args = append(args, flag)
	}
	if b.knows("--offline") {
		args = append(args, "--offline")
	}
	if strings.Contains(b.Flags["-lv"], "4: trace") {
		args = append(args, "-lv", "4") // it then tells what memory it takes, and whether flash attention is on
	}
	if b.knows("--cache-ram") {
		args = append(args, "--cache-ram", strconv.FormatInt(l.PromptCache>>20, 10))
	}
	if l.Checkpoints > 0 {
		if flag := b.first("--ctx-checkpoints", "--swa-checkpoints"); flag != "" {
			args = append(args, flag, strconv.Itoa(l.Checkpoints))
		}
	}
	if l.Model.Projector != "" {
		args = append(args, "--mmproj", l.Model.Projector)
	}
	args = append(args, l.kind()...)
	args = append(args, l.tuning(b)...)
	env := append(engine.Environment(b.Script), l.places()...)
	env = append(env,
		"LLAMA_API_KEY="+l.APIKey,    // in the environment, which others can't read, not in the arguments, which they can
		"LLAMA_SERVER_ROUTER_PORT=0", // any value will do
		"GGML_NO_BACKTRACE=1",        // a failed assertion would start a debugger
	)
	return Cmd{Path: b.Path, Args: append(args, l.Args...), Env: env, Needs: l.needs()}
}

// kind is what a model that doesn't chat needs. Such a model takes the whole of an input in one physical batch.
func (l Launch) kind() []string {
	if l.Model.Type != catalog.TypeEmbedding {
		return nil
	}
	endpoint := "--embeddings"
	if l.Model.Reranker {
		endpoint = "--reranking"
	}
	batch := strconv.Itoa(l.ContextLength)
	args := []string{endpoint, "-b", batch, "-ub", batch}
	if p := l.Model.Pooling; !l.Model.Reranker && (p == "" || p == catalog.PoolingNone) {
		args = append(args, "--pooling", string(catalog.PoolingMean)) // without any, it has no vector for a text
	}
	return args
}

// tuning is what differs from the engine's own choice.
func (l Launch) tuning(b Build) []string {
	var args []string
	if l.BatchSize > 0 && l.Model.Type == catalog.TypeLLM {
		args = append(args, "-b", strconv.Itoa(l.BatchSize), "-ub", strconv.Itoa(min(l.BatchSize, llamaMicroBatch)))
	}
	if l.FlashAttention != Auto {
		args = append(args, flashAttention(l.FlashAttention, b)...)
	}
	if l.OffloadKV == Off {
		args = append(args, "--no-kv-offload")
	}
	if l.Experts > 0 {
		args = append(args, "--override-kv", fmt.Sprintf("%s.expert_used_count=int:%d", l.Model.Architecture, l.Experts))
	}
	if l.Draft != nil {
		args = append(args, "-md", l.Draft.Path)
		if b.knows("--spec-type") { // older builds draft as soon as they have a draft model
			args = append(args, "--spec-type", "draft-simple")
		}
	}
	return args
}

// llamaMicroBatch is llama-server's own choice of a physical batch, in tokens.
const llamaMicroBatch = 512

// flashAttention is the flag in the form that the build has: older ones only switch it on.
func flashAttention(t Toggle, b Build) []string {
	takesValue := strings.Contains(b.Flags["-fa"], "on|off")
	switch {
	case takesValue && t == On:
		return []string{"-fa", "on"}
	case takesValue:
		return []string{"-fa", "off"}
	case t == On:
		return []string{"-fa"}
	default:
		return nil
	}
}
