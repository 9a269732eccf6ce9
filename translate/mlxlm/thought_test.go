package mlxlm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
)

// Templates put thinking between blank lines, which the server sends as a part of it and of the answer.
func TestDecoder_BlanksAroundThinking(t *testing.T) {
	t.Parallel()
	type delta struct {
		Reasoning string `json:"reasoning,omitempty"`
		Content   string `json:"content,omitempty"`
	}
	for name, tt := range map[string]struct {
		deltas        []delta
		thought, said string
		tokens        int // of thinking
	}{
		"both":               {[]delta{{Reasoning: "\n"}, {Reasoning: "Hm"}, {Reasoning: ".\n"}, {Content: "\n\n"}, {Content: "Hello\n"}}, "Hm.\n", "Hello\n", 2},
		"in one piece":       {[]delta{{Reasoning: "\n Hm.", Content: "\n\n Hello"}}, "Hm.", "Hello", 1},
		"nothing thought":    {[]delta{{Reasoning: "\n\n"}, {Content: "\n\n"}, {Content: "Hello"}}, "", "Hello", 0},
		"no thinking":        {[]delta{{Content: "\n  x := 1"}, {Content: "\n"}}, "", "\n  x := 1\n", 0},
		"blanks in between":  {[]delta{{Reasoning: "a"}, {Reasoning: "\n\n"}, {Reasoning: "b"}, {Content: "c"}, {Content: "\n\n"}, {Content: "d"}}, "a\n\nb", "c\n\nd", 3},
		"nothing but blanks": {[]delta{{Reasoning: "a"}, {Content: "\n\n"}}, "a", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stream strings.Builder
			for _, d := range tt.deltas {
				text, err := json.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&stream, "data: {\"choices\":[{\"index\":0,\"finish_reason\":null,\"delta\":%s}]}\n\n", text)
			}
			stream.WriteString("data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"delta\":{}}]}\n\n" +
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n")
			var thought, said string
			var usage translate.Usage
			d := mlxlm.Wire{}.Decoder()
			emit := func(ev translate.Event) error {
				switch ev := ev.(type) {
				case translate.Reasoning:
					thought += ev.Text
				case translate.Text:
					said += ev.Text
				case translate.Usage:
					usage = ev
				}
				return nil
			}
			if err := d.Feed([]byte(stream.String()), emit); err != nil {
				t.Fatal(err)
			}
			want := []any{tt.thought, tt.said, tt.tokens}
			if diff := cmp.Diff(want, []any{thought, said, usage.Reasoning}); diff != "" {
				t.Errorf("thought, said and tokens (-want +got):\n%s", diff)
			}
		})
	}
}
