package llamaserver

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const (
	stateLine = "cmd_child_to_router:state:"
	exitLine  = "cmd_router_to_child:exit\n"
)

// troubles are parts of lines that say why a load fails.
var troubles = []string{
	"error loading model: ", "gguf_init_from_reader: ", "gguf_init_from_file: ", "error: invalid argument: ", "GGML_ASSERT",
	"error while handling", "mtmd_init_from_file: error: ", "failed to load draft model",
	"failed to initialize speculative decoding context: ",
	"failed to allocate", "insufficient memory", "out of memory",
	"RPC server version mismatch", "Failed to find RPC backend",
}

// unknowns are parts of lines about what a newer engine would know of the model.
var unknowns = []string{
	"unknown model architecture", "unknown pre-tokenizer type", "unknown tokenizer", "has invalid ggml type",
	"invalid speculative type",
}

// memoryRefused are parts of lines that report a failed memory allocation.
var memoryRefused = []string{"insufficient memory", "out of memory", "failed to allocate", "unable to allocate"}

// bufferSize matches "CUDA0 KV buffer size =   772.00 MiB", and with --rpc
// "RPC0[10.0.0.3:50052] KV buffer size =   772.00 MiB" on another machine.
var bufferSize = regexp.MustCompile(`(?:([A-Za-z]\w*)(?:\[([^\]\s]+)\])?\s+(\w+)\s+)?buffer size =\s*([\d.]+) MiB`)

// Line parses state lines, and log lines about the load.
func (p *Process) Line(line string) []schedule.Signal {
	if state, ok := strings.CutPrefix(line, stateLine); ok {
		return stateSignals(state)
	}
	switch {
	case strings.Contains(line, "listening on http"), strings.Contains(line, "listening on unix"):
		return []schedule.Signal{{Kind: schedule.SignalReady}} // after the load, in all versions
	case strings.Contains(line, "couldn't bind"):
		return []schedule.Signal{
			{Kind: schedule.SignalPortTaken},
			{Kind: schedule.SignalTrouble, Text: "it couldn't listen on its socket or port"},
		}
	case strings.Contains(line, "Flash Attention") || strings.Contains(line, "flash_attn "):
		switch {
		case strings.Contains(line, "enabled"):
			return []schedule.Signal{{Kind: schedule.SignalFlashAttention, Toggle: schedule.On}}
		case strings.Contains(line, "disabled"):
			return []schedule.Signal{{Kind: schedule.SignalFlashAttention, Toggle: schedule.Off}}
		}
		return nil
	}
	if signals := placementSignals(line); signals != nil {
		return signals
	}
	if !strings.Contains(line, "buffer size") {
		signals := trouble(line)
		for i := range signals {
			text := signals[i].Text
			if slices.ContainsFunc(unknowns, func(part string) bool { return strings.Contains(text, part) }) {
				signals[i].Text = withSentence(text, p.tooOld())
			}
		}
		return signals
	}
	if m := bufferSize.FindStringSubmatch(line); m != nil && m[2] == "" {
		mebibytes, _ := strconv.ParseFloat(m[4], 64)
		return []schedule.Signal{{Kind: schedule.SignalBuffer, Text: m[1], Bytes: int64(mebibytes * (1 << 20)), Weights: m[3] == "model"}}
	}
	return nil
}

func trouble(line string) []schedule.Signal {
	var signals []schedule.Signal
	for _, mark := range troubles {
		if i := strings.Index(line, mark); i >= 0 {
			signals = append(signals, schedule.Signal{
				Kind: schedule.SignalTrouble,
				Text: strings.TrimPrefix(line[i:], "error loading model: "),
			})
			break
		}
	}
	for _, mark := range memoryRefused {
		if strings.Contains(line, mark) {
			return append(signals, schedule.Signal{Kind: schedule.SignalOutOfMemory})
		}
	}
	return signals
}

func withSentence(text, sentence string) string { return strings.TrimSuffix(text+". "+sentence, ". ") }

func stateSignals(state string) []schedule.Signal {
	switch s := gjson.Parse(state); s.Get("state").Str {
	case "ready":
		return []schedule.Signal{{Kind: schedule.SignalReady}}
	case "loading":
		p := s.Get("payload")
		stages := p.Get("stages").Array()
		done := 0.0
		for i, stage := range stages {
			if stage.Str == p.Get("current").Str {
				done = (float64(i) + p.Get("value").Num) / float64(len(stages))
			}
		}
		return []schedule.Signal{{Kind: schedule.SignalProgress, Progress: done}}
	default:
		return []schedule.Signal{{}} // part of the protocol, but not needed
	}
}

// errorLine matches the prefix of an error: "0.00.055.287 E srv  load_model: …".
var errorLine = regexp.MustCompile(`^[\d.]+ E `)

// Level returns the warning level for the engine's errors. The engine's warnings are too frequent to be logged at that level.
func (p *Process) Level(line string) slog.Level {
	switch {
	case strings.HasPrefix(line, stateLine):
		return slog.LevelDebug - 1
	case errorLine.MatchString(line):
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// allLayers is more layers than any model has.
const allLayers = "999"

// onGPUs returns the arguments that say where a model is. How much of it fits is left to the engine's own planner (--fit), which knows
// every architecture: it has only to be told which GPUs it may use, and what to leave free of them.
func onGPUs(l *process.Launch, known flags) []string {
	switch {
	case l.On.Processor:
		args := []string{"-ngl", "0"}
		if known.has("--device") {
			args = []string{"--device", "none"}
		}
		if l.Model.Projector != "" && known.has("--no-mmproj-offload") {
			args = append(args, "--no-mmproj-offload")
		}
		return args
	case len(l.On.Devices) == 0:
		return nil
	}
	var args []string
	if known.has("--device") {
		args = append(args, "--device", strings.Join(l.On.Devices, ","))
	}
	switch {
	case l.GPULayers != nil:
		args = append(args, "-ngl", strconv.Itoa(*l.GPULayers))
	case known.has("--fit-target"):
		var mebibytes []string
		for _, n := range l.On.Margins {
			mebibytes = append(mebibytes, strconv.FormatInt(n>>20, 10))
		}
		args = append(args, "--fit", "on", "--fit-target", strings.Join(mebibytes, ","))
	case l.On.Whole:
		args = append(args, "-ngl", allLayers)
	default:
		args = append(args, "-ngl", strconv.Itoa(int(l.On.Share*float64(l.Layers))))
	}
	return args
}

// placing are the arguments with which an operator decides where a model is.
var placing = []string{
	"-ngl", "--gpu-layers", "--n-gpu-layers", "-dev", "--device", "-sm", "--split-mode", "-ts", "--tensor-split", "-mg", "--main-gpu",
	"-fit", "--fit", "-fitt", "--fit-target", "-ot", "--override-tensor", "-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe", "-ncffn",
	"--n-cpu-ffn", "--rpc",
}

// offloaded matches "load_tensors: offloaded 27/33 layers to GPU".
var offloaded = regexp.MustCompile(`offloaded (\d+)/(\d+) layers to GPU`)

// placementSignals returns the meaning of a line about where the model is; nil: it has none.
func placementSignals(line string) []schedule.Signal {
	switch {
	case strings.Contains(line, "cannot meet free memory target"):
		return []schedule.Signal{{Kind: schedule.SignalReduced}}
	case strings.Contains(line, "invalid device: "):
		return append([]schedule.Signal{{Kind: schedule.SignalNoDevice}}, trouble(line)...)
	}
	m := offloaded.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	layers, _ := strconv.Atoi(m[1])
	all, _ := strconv.Atoi(m[2])
	return []schedule.Signal{{Kind: schedule.SignalLayers, Layers: layers, AllLayers: all}}
}

// Compile returns a request whose prompt is longer than a physical batch, and which generates a few tokens. Batches of several
// sizes and single tokens are computed by different code.
func (p *Process) Compile(l *process.Launch) (path string, body []byte) {
	if !slices.ContainsFunc(l.On.Devices, func(name string) bool { return strings.HasPrefix(name, "CUDA") }) {
		return "", nil // other drivers take moments
	}
	s, prompt := l.Spec, strings.Repeat("a ", min(microBatch+microBatch/8, l.ContextLength/2))
	if s.Model.Type == catalog.TypeEmbedding {
		if s.Model.Reranker {
			return "/v1/rerank", fmt.Appendf(nil, `{"query":"a","documents":[%q]}`, prompt)
		}
		return "/v1/embeddings", fmt.Appendf(nil, `{"input":%q}`, prompt)
	}
	return "/completion", fmt.Appendf(nil, `{"prompt":%q,"n_predict":4,"cache_prompt":false}`, prompt)
}

var (
	_ process.DeviceLister = (*Process)(nil)
	_ process.Compiler     = (*Process)(nil)
)
