package translate_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// TestTranscripts keeps what becomes of each transcript: the stream of a client that asked for nothing more (.stream), of
// one that sees all (.full.stream), the events, and the body of a client that doesn't stream.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			base := filepath.Join("testdata", "llama", tr.name)
			stream, _ := rewrite(rewriteOptions{}, tr.upstream)
			golden(t, base+".stream", stream)
			full, _ := rewrite(rewriteOptions{IncludeUsage: true, ReasoningField: openai.ReasoningContent}, tr.upstream)
			golden(t, base+".full.stream", full)
			events := decode(t, tr.upstream)
			golden(t, base+".events", []byte(eventLines(t, events)))
			golden(t, base+".body.json", line(gather(openai.ReasoningPlain, events)))
		})
	}
}

// line ends a body that isn't empty with a newline.
func line(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return append(body, '\n')
}

// TestRewriter_OptionsAreIndependent: each of the two options does its own edit, whatever the other is.
func TestRewriter_OptionsAreIndependent(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			full, _ := rewrite(rewriteOptions{IncludeUsage: true, ReasoningField: openai.ReasoningContent}, tr.upstream)
			for _, usage := range []bool{false, true} {
				for _, field := range []openai.ReasoningField{"", openai.ReasoningPlain, openai.ReasoningContent} {
					want := string(full)
					if !usage {
						want = withoutUsage(want)
					}
					if field != openai.ReasoningContent {
						want = strings.ReplaceAll(want, `"delta":{"reasoning_content":`, `"delta":{"reasoning":`)
					}
					got, _ := rewrite(rewriteOptions{IncludeUsage: usage, ReasoningField: field}, tr.upstream)
					if diff := cmp.Diff(want, string(got)); diff != "" {
						t.Errorf("include_usage %t, field %q (-want +got):\n%s", usage, field, diff)
					}
				}
			}
		})
	}
}

func withoutUsage(stream string) string {
	var kept strings.Builder
	for frame := range strings.SplitAfterSeq(stream, "\n\n") {
		if !strings.Contains(frame, `"choices":[],`) {
			kept.WriteString(frame)
		}
	}
	return kept.String()
}

// TestRewriter_FaultsAreTold: a stream that went wrong for the events went wrong for the client of the short way, too, who
// is told in the last frame.
func TestRewriter_FaultsAreTold(t *testing.T) {
	t.Parallel()
	byEventsOnly := map[string]string{ // what only a decoder sees, since it looks into the chunks
		"call-without-name":  "the pieces of calls aren't followed",
		"calls-out-of-order": "the pieces of calls aren't followed",
	}
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			events := decode(t, tr.upstream)
			ended, ok := events[len(events)-1].(translate.Fault)
			if byEventsOnly[tr.name] != "" {
				if !ok {
					t.Error("the events end well")
				}
				return
			}
			stream, fault := rewrite(rewriteOptions{}, tr.upstream)
			if diff := cmp.Diff(ended.Err, fault); diff != "" {
				t.Errorf("fault (-events +rewriter):\n%s", diff)
			}
			if last := []byte(`data: {"error":{"message":"`); ok != bytes.Contains(stream, last) {
				t.Errorf("fault is %t, but the stream is:\n%s", ok, stream)
			}
		})
	}
}
