package llamaserver

import (
	"math"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestChunk_Parse(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{"choices":[{"delta":{"tool_calls":[]},"finish_reason":"stop"}]}`: true,
		`{"choices":[{"delta":{"tool_calls":null},"finish_reason":null}]}`: true,
		`{"choices":[]}`: true,
		`{}`:             true,
		`{"choices":[{"delta":{"tool_calls":{}}}]}`:            false,
		`{"choices":[{"delta":{"tool_calls":"a"}}]}`:           false,
		`{"choices":[{"delta":{},"finish_reason":7}]}`:         false,
		`{"choices":[{"delta":{},"finish_reason":"stop"}`:      false,
		`{"choices":[{"delta":{},"finish_reason":"stop"},{}]}`: false,
		`{"choices":[{"delta":{},"finish_reason":"stop",}]}`:   false,
		`{"choices":[{"delta":7}]}`:                            false,
		`{"choices":{}}`:                                       false,
		`{"choices":[]} 1`:                                     false,
		`[]`:                                                   false,
	} {
		var c chunk
		if got := c.parse([]byte(data)); got != want {
			t.Errorf("%s: %t, want %t", data, got, want)
		}
	}
}

func TestMeasured(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]float64{"0": 0, "2.5": 2.5, "1.7976931348623157e308": math.MaxFloat64, "-1": 0, "1e999": 0, "-1e999": 0, `"7"`: 0, "null": 0, "": 0} {
		if got := measured([]byte(value)); got != want {
			t.Errorf("%s: %v, want %v", value, got, want)
		}
	}
}

// TestParseTimings: of a member that some engine might send, only what is a number counts.
func TestParseTimings(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]timings{
		`{"cache_n": 3,"prompt_n":4, "prompt_ms":1.5,"predicted_n":8,"predicted_ms":2,"predicted_per_second":4e3,"draft_n":5,"draft_n_accepted":2,"more":{"prompt_n":9}}`: {
			told:   translate.Timings{PromptMillis: 1.5, PredictedMillis: 2, PredictedPerSecond: 4000, DraftTokens: 5, DraftAccepted: 2},
			cached: 3, prompt: 4, predicted: 8, isCounted: true,
		},
		`{"predicted_n":null,"prompt_n":1e300}`: {prompt: math.MaxInt32},
		`[]`:                                    {},
		``:                                      {},
	} {
		if got := parseTimings([]byte(value)); got != want {
			t.Errorf("%s: %+v, want %+v", value, got, want)
		}
	}
}
