package translate

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranscripts keeps what becomes of each transcript: the stream of a client that asked for nothing more (.stream), of
// one that sees all (.full.stream), the events, and the body of a client that doesn't stream.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			base := filepath.Join("testdata", "llama", tr.name)
			stream, _ := rewrite(RewriteOptions{}, tr.upstream)
			golden(t, base+".stream", stream)
			full, _ := rewrite(RewriteOptions{IncludeUsage: true, ReasoningField: ReasoningContent}, tr.upstream)
			golden(t, base+".full.stream", full)
			events := decode(t, tr.upstream)
			golden(t, base+".events", []byte(eventLines(t, events)))
			golden(t, base+".body.json", line(gather(ReasoningPlain, events)))
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
			full, _ := rewrite(RewriteOptions{IncludeUsage: true, ReasoningField: ReasoningContent}, tr.upstream)
			for _, usage := range []bool{false, true} {
				for _, field := range []ReasoningField{"", ReasoningPlain, ReasoningContent} {
					want := string(full)
					if !usage {
						want = withoutUsage(want)
					}
					if field != ReasoningContent {
						want = strings.ReplaceAll(want, `"delta":{"reasoning_content":`, `"delta":{"reasoning":`)
					}
					got, _ := rewrite(RewriteOptions{IncludeUsage: usage, ReasoningField: field}, tr.upstream)
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
			ended, ok := events[len(events)-1].(Fault)
			if byEventsOnly[tr.name] != "" {
				if !ok {
					t.Error("the events end well")
				}
				return
			}
			stream, fault := rewrite(RewriteOptions{}, tr.upstream)
			if diff := cmp.Diff(ended.Err, fault); diff != "" {
				t.Errorf("fault (-events +rewriter):\n%s", diff)
			}
			if last := []byte(`data: {"error":{"message":"`); ok != bytes.Contains(stream, last) {
				t.Errorf("fault is %t, but the stream is:\n%s", ok, stream)
			}
		})
	}
}

func TestChatBody_ReasoningField(t *testing.T) {
	t.Parallel()
	events := []Event{Reasoning{"Hm"}, Reasoning{"m."}, Text{"Hi"}, Usage{Prompt: 3, Cached: 1, Completion: 2}, Finish{FinishStop}}
	for field, want := range map[ReasoningField]string{
		"":               `"content":"Hi","refusal":null,"reasoning":"Hmm."}`,
		ReasoningPlain:   `"content":"Hi","refusal":null,"reasoning":"Hmm."}`,
		ReasoningContent: `"content":"Hi","refusal":null,"reasoning_content":"Hmm."}`,
	} {
		if got := string(gather(field, events)); !strings.Contains(got, want) {
			t.Errorf("field %q: %s", field, got)
		}
	}
}

// TestChatBody_SaysNothingOfAFault: the caller tells the client of a fault by the status, so there must be no body yet.
func TestChatBody_SaysNothingOfAFault(t *testing.T) {
	t.Parallel()
	if got := gather("", []Event{Prompt{}, Text{"Hi"}, Usage{}, Fault{brokenOff()}}); len(got) > 0 {
		t.Errorf("body: %s", got)
	}
}
