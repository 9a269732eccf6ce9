package echoengine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// block is a block of an answer of the Messages API.
type block struct{ Kind, Text string } // of a call: its name and its arguments

// wholeBlocks are the blocks of a body.
func wholeBlocks(body string) []block {
	var all []block
	for _, b := range gjson.Get(body, "content").Array() {
		kind := b.Get("type").Str
		text := b.Get("text").Str + b.Get("thinking").Str
		if kind == "tool_use" {
			text = b.Get("name").Str + b.Get("input").Raw
		}
		all = append(all, block{kind, text})
	}
	return all
}

// streamedBlocks are the blocks of a stream. Each has to end before the next begins.
func streamedBlocks(t *testing.T, stream string) []block {
	t.Helper()
	var all []block
	open := -1
	for _, frame := range frames(stream) {
		index := int(frame.Get("index").Int())
		switch frame.Get("type").Str {
		case "content_block_start":
			b := frame.Get("content_block")
			if open >= 0 || index != len(all) {
				t.Errorf("block %d begins while %d is open, after %d blocks", index, open, len(all))
			}
			open = index
			all = append(all, block{b.Get("type").Str, b.Get("name").Str})
		case "content_block_delta":
			if index != open {
				t.Fatalf("a piece of block %d while %d is open", index, open)
			}
			d := frame.Get("delta")
			all[index].Text += d.Get("text").Str + d.Get("thinking").Str + d.Get("partial_json").Str
		case "content_block_stop":
			open = -1
		}
	}
	return all
}

func TestMessages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	calls := []block{{"text", "well"}, {"tool_use", `near{"x":1}`}, {"tool_use", `far{"y":"two words"}`}}
	const interleaved = "well\ncall near {\"x\":1}\ncall far {\"y\":\"two words\"}"
	for name, tt := range map[string]struct {
		prompt, more string
		want         []block
		stop         string // the reason
		in, out      int64
	}{
		"a text":          {"hello there", "", []block{{"text", "hello there"}}, "end_turn", 2, 2},
		"thinking":        {"think of it\nyes", `,"thinking":{"type":"enabled","budget_tokens":20}`, []block{{"thinking", "of it"}, {"text", "yes"}}, "end_turn", 4, 3},
		"hidden thinking": {"think of it\nyes", "", []block{{"text", "yes"}}, "end_turn", 4, 3},
		"a stop sequence": {"hello big world", `,"stop_sequences":["g wo"]`, []block{{"text", "hello bi"}}, "stop_sequence", 3, 3},
		"calls":           {interleaved, anthropicTools, calls, "tool_use", 8, 7},
		"one call":        {interleaved, anthropicTools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, calls[:2], "tool_use", 8, 7},
		"a demanded call": {"hi", anthropicTools + `,"tool_choice":{"type":"any"}`, []block{{"tool_use", `near{"said":"hi"}`}}, "tool_use", 1, 3},
		"a named tool":    {"hi", anthropicTools + `,"tool_choice":{"type":"tool","name":"far"}`, []block{{"tool_use", `far{"said":"hi"}`}}, "tool_use", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := s.messages(tt.prompt, tt.more)
			if diff := cmp.Diff(tt.want, wholeBlocks(body)); status != 200 || diff != "" {
				t.Errorf("status %d (-want +got):\n%s\n%s", status, diff, body)
			}
			status, stream := s.messages(tt.prompt, tt.more+`,"stream":true`)
			if diff := cmp.Diff(tt.want, streamedBlocks(t, stream)); status != 200 || diff != "" {
				t.Errorf("stream, status %d (-want +got):\n%s\n%s", status, diff, stream)
			}
			var last gjson.Result
			for _, frame := range frames(stream) {
				if frame.Get("type").Str == "message_delta" {
					last = frame
				}
			}
			for where, got := range map[string][2]gjson.Result{
				"body":   {gjson.Get(body, "stop_reason"), gjson.Get(body, "usage")},
				"stream": {last.Get("delta.stop_reason"), last.Get("usage")},
			} {
				if got[0].Str != tt.stop || got[1].Get("input_tokens").Int() != tt.in || got[1].Get("output_tokens").Int() != tt.out {
					t.Errorf("%s: stop reason %s, usage %s; want %s, %d and %d", where, got[0], got[1], tt.stop, tt.in, tt.out)
				}
			}
		})
	}
}
