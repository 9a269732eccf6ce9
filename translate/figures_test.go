package translate_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// TestRewriter_Figures checks what is known of an answer that is cut, in either way to the client.
func TestRewriter_Figures(t *testing.T) {
	t.Parallel()
	all := transcripts(t)
	long := all[slices.IndexFunc(all, func(tr transcript) bool { return tr.name == "long-prompt" })]
	frames := bytes.SplitAfter(long.upstream, []byte("\n\n"))
	for name, tt := range map[string]struct {
		frames int
		want   translate.Usage
		millis float64
	}{
		"before the prompt":        {0, translate.Usage{}, 0},
		"amid the prompt":          {3, translate.Usage{Prompt: 65, Cached: 1}, 0},
		"at the end of the prompt": {5, translate.Usage{Prompt: 126, Cached: 1}, 0},
		"amid the answer":          {8, translate.Usage{Prompt: 126, Cached: 1, Completion: 2}, 0},
		"at the end":               {len(frames), translate.Usage{Prompt: 126, Cached: 1, Completion: 10}, 34.167},
	} {
		for way, r := range map[string]wire.Rewriter{
			"passed on":   newRewriter(&request.Chat{}, rewriteOptions{}),
			"by events":   newRewriter(&request.Chat{Stops: []string{"never"}}, rewriteOptions{}),
			"undecorated": wire.Encoded(llamaserver.Wire{}.Decoder(), discard{}),
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				r.Append(nil, bytes.Join(frames[:tt.frames], nil))
				usage, timings := r.Figures()
				if diff := cmp.Diff(tt.want, usage); diff != "" || timings.PromptMillis != tt.millis {
					t.Errorf("%v ms, (-want +got):\n%s", timings.PromptMillis, diff)
				}
			})
		}
	}
}

// discard is an encoder of nothing.
type discard struct{}

func (discard) Append(dst []byte, _ translate.Event) []byte { return dst }
