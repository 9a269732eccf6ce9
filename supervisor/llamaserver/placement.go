package llamaserver

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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
		args = append(args, "--fit", "on", "--fit-target", mebibytesOf(l.On.Margins))
	case l.On.Whole:
		args = append(args, "-ngl", allLayers)
	default:
		args = append(args, "-ngl", strconv.Itoa(int(l.On.Share*float64(l.Layers))))
	}
	return args
}

func mebibytesOf(sizes []int64) string {
	var words []string
	for _, n := range sizes {
		words = append(words, strconv.FormatInt(n>>20, 10))
	}
	return strings.Join(words, ",")
}

// placing are the arguments with which an operator decides where a model is.
var placing = []string{
	"-ngl", "--gpu-layers", "--n-gpu-layers", "-dev", "--device", "-sm", "--split-mode", "-ts", "--tensor-split", "-mg", "--main-gpu",
	"-fit", "--fit", "-fitt", "--fit-target", "-ot", "--override-tensor", "-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe", "-ncffn",
	"--n-cpu-ffn", "--rpc",
}

func isPlacing(arg string) bool { return slices.Contains(placing, nameOf(arg)) }

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
