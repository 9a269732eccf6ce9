package mlxlm_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// A completion is asked for one token more than the client wants, which is left out where the answer ends at that limit.
func TestCompletion_Surplus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit  int
		pieces string // one byte each
		reason string
		tokens int
		stop   string
		want   string // with the reason and the number of tokens
	}{
		"at the limit":            {2, "abc", "length", 3, "", "ab length 2"},
		"before the limit":        {5, "abc", "stop", 4, "", "abc stop 4"},
		"at the limit, complete":  {2, "ab", "stop", 3, "", "ab length 2"},
		"one token":               {1, "ab", "length", 2, "", "a length 1"},
		"nothing that shows":      {1, "", "length", 2, "", " length 1"},
		"a stop string":           {3, "abcd", "length", 4, "b", "a stop 3"},
		"a stop string, too late": {1, "ab", "length", 2, "b", "a length 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stream strings.Builder
			for _, piece := range tt.pieces {
				stream.WriteString(`data: {"choices":[{"index":0,"finish_reason":null,"text":"` + string(piece) + "\"}]}\n\n")
			}
			stream.WriteString(`data: {"choices":[{"index":0,"finish_reason":"` + tt.reason + "\",\"text\":\"\"}]}\n\n")
			stream.WriteString(`data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":` + strconv.Itoa(tt.tokens) + "}}\n\ndata: [DONE]\n\n")
			var said strings.Builder
			asked := &request.Completion{MaxTokens: tt.limit}
			if tt.stop != "" {
				asked.Stop = []string{tt.stop}
			}
			decoder := mlxlm.Wire{}.CompletionDecoder(asked)
			used := 0
			for _, b := range []byte(stream.String()) {
				err := decoder.Feed([]byte{b}, func(ev translate.Event) error {
					switch ev := ev.(type) {
					case translate.Text:
						said.WriteString(ev.Text)
					case translate.Usage:
						used = ev.Completion
					case translate.Finish:
						fmt.Fprintf(&said, " %s %d", ev.Reason, used)
					}
					return nil
				})
				if err != nil && !errors.Is(err, translate.ErrCut) {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, said.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
