package llamaserver

import (
	"math"
	"testing"
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
	for n, want := range map[float64]float64{0: 0, 2.5: 2.5, math.MaxFloat64: math.MaxFloat64, -1: 0, math.Inf(1): 0, math.Inf(-1): 0} {
		if got := measured(n); got != want {
			t.Errorf("%v: %v, want %v", n, got, want)
		}
	}
	if got := measured(math.NaN()); got != 0 {
		t.Errorf("NaN: %v", got)
	}
}
