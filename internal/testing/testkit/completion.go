package testkit

import (
	"encoding/json"
	"strings"
	"testing"
)

// Completion is an answer of the Completions API as a client reads it.
type Completion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index        int
		Text         string
		FinishReason string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens  []string
			Each    []float64            `json:"token_logprobs"`
			Top     []map[string]float64 `json:"top_logprobs"`
			Offsets []int                `json:"text_offset"`
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

// AssembleCompletion returns what a client makes of a stream of one choice.
func AssembleCompletion(tb testing.TB, stream []byte) Completion {
	tb.Helper()
	var all Completion
	for frame := range strings.SplitSeq(string(stream), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk Completion
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			tb.Fatalf("%v: %s", err, data)
		}
		switch {
		case chunk.Usage != nil:
			all.Usage = chunk.Usage
			continue
		case len(all.Choices) == 0:
			all = chunk
			continue
		}
		a, b := &all.Choices[0], &chunk.Choices[0]
		a.Text += b.Text
		a.FinishReason += b.FinishReason
		switch {
		case b.Logprobs == nil:
		case a.Logprobs == nil:
			a.Logprobs = b.Logprobs
		default:
			a.Logprobs.Tokens = append(a.Logprobs.Tokens, b.Logprobs.Tokens...)
			a.Logprobs.Each = append(a.Logprobs.Each, b.Logprobs.Each...)
			a.Logprobs.Top = append(a.Logprobs.Top, b.Logprobs.Top...)
			a.Logprobs.Offsets = append(a.Logprobs.Offsets, b.Logprobs.Offsets...)
		}
	}
	return all
}
