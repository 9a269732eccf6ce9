package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// TestResponses_OfTranscripts: whatever an engine sends, the stream of a response is in order and matches the published schemas.
func TestResponses_OfTranscripts(t *testing.T) {
	t.Parallel()
	all := readPublished(t)
	for _, tr := range transcripts(t) {
		for name, fields := range map[string]string{"text": ``, "logprobs": `,"include":["message.output_text.logprobs"],"top_logprobs":2`, "one call": `,"parallel_tool_calls":false`} {
			t.Run(tr.name+" "+name, func(t *testing.T) {
				t.Parallel()
				ask, err := responses.Parse(testkit.Scan(t, `{"input":"Hi"`+fields+`}`), capsOf(request.Caps{}))
				if err != nil {
					t.Fatal(err)
				}
				s := responses.Stream{Answer: responses.Answer{ID: "resp_" + strings.Repeat("0a", 24), Created: time.Unix(1, 0), Model: "m", Request: ask}}
				dst := s.Append(s.Begin(nil, false), translate.Round{Number: 1})
				var fault *translate.Error
				for _, ev := range decode(t, tr.upstream) {
					dst = s.Append(dst, ev)
					if ended, ok := ev.(translate.Fault); ok {
						fault = ended.Err
					}
				}
				dst = s.End(dst, fault)
				if problems := testkit.ResponsesProblems(dst); len(problems) > 0 {
					t.Errorf("%s\n%s", strings.Join(problems, "\n"), dst)
				}
				all.checkStream(t, "openai", "responseEvent", dst)
			})
		}
	}
}
