package supervisor

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLlamaLine(t *testing.T) {
	t.Parallel()
	trouble := func(text string) []Signal { return []Signal{{Kind: SignalTrouble, Text: text}} }
	progress := func(p float64) []Signal { return []Signal{{Kind: SignalProgress, Progress: p}} }
	for line, want := range map[string][]Signal{
		llamaState + `{"state":"loading","payload":{"stages":["text_model"],"current":"text_model","value":0.25}}`:                 progress(0.25),
		llamaState + `{"state":"loading","payload":{"stages":["text_model","mmproj_model"],"current":"mmproj_model","value":0.5}}`: progress(0.75),
		llamaState + `{"state":"loading"}`:                                      progress(0),
		llamaState + `{"state":"ready","payload":{"id":"tiny"}}`:                {{Kind: SignalReady}},
		llamaState + `{"state":"sleeping","payload":null}`:                      {{}},
		llamaState + `{"state":`:                                                {{}},
		llamaState + `[]`:                                                       {{}},
		"0.00.104.518 I srv  llama_server: listening on http://127.0.0.1:18100": {{Kind: SignalReady}},
		"0.00.104.518 I srv  llama_server: listening on unix:///run/s.sock":     {{Kind: SignalReady}},
		"0.00.001.000 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 18104": {
			{Kind: SignalPortTaken}, {Kind: SignalTrouble, Text: "it couldn't listen on its socket or port"},
		},
		"0.00.080.100 E llama_model_load: error loading model: unknown model architecture: 'foobar'": trouble("unknown model architecture: 'foobar'"),
		"0.00.080.100 E gguf_init_from_file: failed to open GGUF file '/nope.gguf' (No such file)":   trouble("gguf_init_from_file: failed to open GGUF file '/nope.gguf' (No such file)"),
		"error: invalid argument: --nonsense-flag":                                                   trouble("error: invalid argument: --nonsense-flag"),
		"0.00.080.100 E ggml_aligned_malloc: insufficient memory (attempted to allocate 768.00 MB)": {
			{Kind: SignalTrouble, Text: "insufficient memory (attempted to allocate 768.00 MB)"}, {Kind: SignalOutOfMemory},
		},
		"0.00.080.100 E llama_model_load: error loading model: unable to allocate AMX buffer": {
			{Kind: SignalTrouble, Text: "unable to allocate AMX buffer"}, {Kind: SignalOutOfMemory},
		},
		"0.00.090.000 I load_tensors:   CPU_Mapped model buffer size =   772.00 MiB": {{Kind: SignalBuffer, Bytes: 772 << 20}},
		"0.00.090.000 I load_tensors: buffer size is a mystery":                      nil,
		"llama_context: Flash Attention was auto, set to enabled":                    {{Kind: SignalFlashAttention, Toggle: On}},
		"llama_context: flash_attn    = disabled":                                    {{Kind: SignalFlashAttention, Toggle: Off}},
		"llama_context: flash_attn    = auto":                                        nil,
		"0.00.000.838 I srv  llama_server: initializing ...":                         nil,
		"\xef\xbf\xbd": nil,
	} {
		if diff := cmp.Diff(want, (&LlamaServer{}).Line(line)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

func TestLlamaLevel(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]slog.Level{
		llamaState + "{}":                 slog.LevelDebug - 1,
		"0.00.055.287 E srv  load: wrong": slog.LevelWarn,
		"0.00.055.287 W srv  load: hm":    slog.LevelDebug,
		"Error in free words":             slog.LevelDebug,
	} {
		if got := (&LlamaServer{}).Level(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
