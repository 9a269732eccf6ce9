package node

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettings_Mistakes(t *testing.T) {
	t.Parallel()
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	s := Settings{
		Presets: map[string]Preset{
			"good": {
				"temperature": value("0.2"), "max_output_tokens": value("9"), "system_prompt": value(`"x"`), "thinking": value("{}"),
				"top_n_sigma": value("1"), "of_another_api": value("1"), "stop": value(`["END"]`),
			},
			"hot": {"temperature": value(`"hot"`)},
			"odd": {"temprature": value("1")},
		},
		Engines: map[string]EngineSettings{"llama_server": {Args: []string{"-np", "2", "-ngl", "9", "-ot", "a", "-ot", "b", "--temp", "-1"}}},
		Models: map[string]ModelSettings{
			"p/m": {GPULayers: new(int), Args: []string{"--ctx-size=512", "--temp", "1", "-ngl", "0", "--temp", "2"}},
		},
	}
	want := []string{
		`preset hot: "temperature" must be a number, not a string`,
		"preset odd: no request has a field temprature: did you mean temperature",
		"engine llama_server: args has -np, which the option parallel sets: use that alone",
		"model p/m: args has --ctx-size, which the option context_length sets: use that alone",
		"model p/m: args has -ngl, which the option gpu_layers sets: use that alone",
		"model p/m: args has --temp twice: leave one of them",
	}
	if diff := cmp.Diff(want, s.Mistakes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMeans(t *testing.T) {
	t.Parallel()
	keys := []string{"lmcaddy/tinychat", "qwen/qwen3-4b@q8_0", "qwen/qwen3-4b@q4_k_m", "a/same", "b/same"}
	for name, want := range map[string]string{
		"lmcaddy/tinychat": "lmcaddy/tinychat", "TinyChat": "lmcaddy/tinychat", "tinychat:latest": "lmcaddy/tinychat",
		"qwen3-4b@q8_0": "qwen/qwen3-4b@q8_0", "same": "", "none": "",
	} {
		if got := Means(keys, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
