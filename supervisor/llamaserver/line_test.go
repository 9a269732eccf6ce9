package llamaserver

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestProcess_Line(t *testing.T) {
	t.Parallel()
	trouble := func(text string) []schedule.Signal {
		return []schedule.Signal{{Kind: schedule.SignalTrouble, Text: text}}
	}
	progress := func(p float64) []schedule.Signal {
		return []schedule.Signal{{Kind: schedule.SignalProgress, Progress: p}}
	}
	for line, want := range map[string][]schedule.Signal{
		stateLine + `{"state":"loading","payload":{"stages":["text_model"],"current":"text_model","value":0.25}}`:                 progress(0.25),
		stateLine + `{"state":"loading","payload":{"stages":["text_model","mmproj_model"],"current":"mmproj_model","value":0.5}}`: progress(0.75),
		stateLine + `{"state":"loading"}`:                                       progress(0),
		stateLine + `{"state":"ready","payload":{"id":"tiny"}}`:                 {{Kind: schedule.SignalReady}},
		stateLine + `{"state":"sleeping","payload":null}`:                       {{}},
		stateLine + `{"state":`:                                                 {{}},
		stateLine + `[]`:                                                        {{}},
		"0.00.104.518 I srv  llama_server: listening on http://127.0.0.1:18100": {{Kind: schedule.SignalReady}},
		"0.00.104.518 I srv  llama_server: listening on unix:///run/s.sock":     {{Kind: schedule.SignalReady}},
		"0.00.001.000 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18104": {
			{Kind: schedule.SignalPortTaken}, {Kind: schedule.SignalTrouble, Text: "it couldn't listen on its socket or port"},
		},
		"0.00.080.100 E llama_model_load: error loading model: unknown model architecture: 'foobar'": trouble("unknown model architecture: 'foobar'"),
		"0.00.080.100 E gguf_init_from_file: failed to open GGUF file '/nope.gguf' (No such file)":   trouble("gguf_init_from_file: failed to open GGUF file '/nope.gguf' (No such file)"),
		"error: invalid argument: --nonsense-flag":                                                   trouble("error: invalid argument: --nonsense-flag"),
		"0.00.080.100 E ggml_aligned_malloc: insufficient memory (attempted to allocate 768.00 MB)": {
			{Kind: schedule.SignalTrouble, Text: "insufficient memory (attempted to allocate 768.00 MB)"}, {Kind: schedule.SignalOutOfMemory},
		},
		"0.00.080.100 E llama_model_load: error loading model: unable to allocate AMX buffer": {
			{Kind: schedule.SignalTrouble, Text: "unable to allocate AMX buffer"}, {Kind: schedule.SignalOutOfMemory},
		},
		"0.00.090.000 I load_tensors:   CPU_Mapped model buffer size =   772.00 MiB":                                                {{Kind: schedule.SignalBuffer, Text: "CPU_Mapped", Bytes: 772 << 20, Weights: true}},
		"0.00.090.000 I llama_kv_cache:      CUDA0 KV buffer size =     1.50 MiB":                                                   {{Kind: schedule.SignalBuffer, Text: "CUDA0", Bytes: 3 << 19}},
		"0.00.067.243 I load_tensors: offloaded 27/33 layers to GPU":                                                                {{Kind: schedule.SignalLayers, Layers: 27, AllLayers: 33}},
		"0.00.056.617 I common_params_fit_impl: cannot meet free memory target of 2044 MiB, need to reduce device memory by 36 MiB": {{Kind: schedule.SignalReduced}},
		"0.00.069.260 I common_params_fit_impl: cannot meet free memory targets on all devices, need to use 96 MiB less in total":   {{Kind: schedule.SignalReduced}},
		`error while handling argument "--device": invalid device: CUDA0`: {
			{Kind: schedule.SignalNoDevice}, {Kind: schedule.SignalTrouble, Text: `error while handling argument "--device": invalid device: CUDA0`},
		},
		"0.00.090.000 I buffer size = 2.00 MiB":                                               {{Kind: schedule.SignalBuffer, Bytes: 2 << 20}},
		"0.00.143.647 I load_tensors: RPC0[127.0.0.1:21952] model buffer size =     1.50 MiB": nil, // of another machine
		"0.00.030.000 E RPC server version mismatch: 7.0.0": {
			{Kind: schedule.SignalTrouble, Text: "RPC server version mismatch: 7.0.0"},
		},
		"error: Failed to find RPC backend": {
			{Kind: schedule.SignalTrouble, Text: "Failed to find RPC backend"},
		},
		"0.00.090.000 I load_tensors: buffer size is a mystery":   nil,
		"llama_context: Flash Attention was auto, set to enabled": {{Kind: schedule.SignalFlashAttention, Toggle: schedule.On}},
		"llama_context: flash_attn    = disabled":                 {{Kind: schedule.SignalFlashAttention, Toggle: schedule.Off}},
		"llama_context: flash_attn    = auto":                     nil,
		"0.00.000.838 I srv  llama_server: initializing ...":      nil,
		"\xef\xbf\xbd": nil,
	} {
		if diff := cmp.Diff(want, (&Process{}).Line(line)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

func TestProcess_Level(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		stateLine + "{}":                  slog.LevelDebug - 1,
		"0.00.055.287 E srv  load: wrong": slog.LevelWarn,
		"0.00.055.287 W srv  load: hm":    slog.LevelDebug,
		"Error in free words":             slog.LevelDebug,
	} {
		if got := (&Process{}).Level(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
