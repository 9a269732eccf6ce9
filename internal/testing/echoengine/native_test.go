package echoengine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

func TestNativeChat(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, tt := range map[string]struct {
		prompt, more string
		want         string // the output
		in, out      int64
	}{
		"a text":        {"hello there", "", `[{"type":"message","content":"hello there"}]`, 2, 2},
		"thinking":      {"think of it\nyes", "", `[{"type":"reasoning","content":"of it"},{"type":"message","content":"yes"}]`, 4, 3},
		"a limit":       {"a b c d", `,"max_output_tokens":2`, `[{"type":"message","content":"a b "}]`, 4, 2},
		"a stop string": {"hello big world", `,"stop":"g wo"`, `[{"type":"message","content":"hello bi"}]`, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := s.native(tt.prompt, tt.more)
			if status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			status, stream := s.native(tt.prompt, tt.more+`,"stream":true`)
			all := frames(stream)
			if status != 200 {
				t.Fatalf("%d %s", status, stream)
			}
			for where, result := range map[string]gjson.Result{"body": gjson.Parse(body), "stream": all[len(all)-1].Get("result")} {
				if got := result.Get("output").Raw; got != tt.want {
					t.Errorf("%s: output %s, want %s", where, got, tt.want)
				}
				stats := result.Get("stats")
				if stats.Get("input_tokens").Int() != tt.in || stats.Get("total_output_tokens").Int() != tt.out || stats.Get("tokens_per_second").Num <= 0 {
					t.Errorf("%s: stats %s", where, stats)
				}
			}
		})
	}
}

// The events of a stream come as those of any engine.
func TestNativeChat_Events(t *testing.T) {
	t.Parallel()
	s := serve(t)
	if status, body := s.do("POST", "/api/v1/models/load", `{"model":"canyon"}`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	_, stream := s.native("think hm\nyes", `,"stream":true`)
	var got []string
	for _, frame := range frames(stream) {
		got = append(got, frame.Get("type").Str)
	}
	want := []string{
		"chat.start", "prompt_processing.start", "prompt_processing.progress", "prompt_processing.end",
		"reasoning.start", "reasoning.delta", "reasoning.end", "message.start", "message.delta", "message.end", "chat.end",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A conversation goes on where it is stored: the engine is sent all of it.
func TestNativeChat_Continues(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, body := s.native("one two", `,"system_prompt":"be brief"`)
	id := gjson.Get(body, "response_id").Str
	if _, body = s.native("three", `,"previous_response_id":"`+id+`"`); gjson.Get(body, "stats.input_tokens").Int() != 7 {
		t.Errorf("the words of the system prompt, of two turns and of an answer aren't seven: %s", body)
	}
}
