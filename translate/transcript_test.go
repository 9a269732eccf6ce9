package translate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// TestTranscripts compares the views of each transcript with its golden file: the events, the answers of a chat and of the
// Messages API, streamed and in one piece, and for some transcripts the answers to other requests.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tr := range transcripts(t) {
		seen[tr.name] = true
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			events := decode(t, tr.upstream)
			stream, _ := rewrite(rewriteOptions{}, tr.upstream)
			full, _ := rewrite(rewriteOptions{IncludeUsage: true, ReasoningField: openai.ReasoningContent}, tr.upstream)
			shown := messagesOptions{thinking: anthropic.ThinkingShown}
			views := []view{
				{"events", []byte(eventLines(t, events))},
				{"chat stream", stream},
				{"chat stream with all options", full},
				{"chat body", line(gather(openai.ReasoningPlain, events))},
				{"messages stream", messagesStream(shown, events)},
				{"messages body", line(messagesBodyOf(shown, events))},
				{"ollama stream", ollamaAnswer(ollama.Answer{}, events)},
				{"ollama body", line(ollamaAnswer(ollama.Answer{IsWhole: true}, events))},
			}
			for _, more := range moreViews[tr.name] {
				views = append(views, more(t, tr.upstream)...)
			}
			tr.golden(t, views...)
		})
	}
	for name := range moreViews {
		if !seen[name] {
			t.Errorf("there is no transcript %s", name)
		}
	}
}

// moreViews are the answers to other requests, for the transcripts that show them best.
var moreViews = map[string][]func(t *testing.T, upstream []byte) []view{
	"broken-off":         {viewsWithFigures, nativeView},
	"empty":              {nativeView},
	"error-frame":        {nativeView},
	"length-in-text":     {viewsWithFigures, nativeView},
	"length-in-thinking": {nativeView},
	"long-prompt":        {nativeView},
	"no-usage":           {nativeView},
	"nothing":            {nativeView},
	"plain":              {nativeView, nativeViewAfterLoad},
	"speculative":        {viewsWithFigures},
	"logprobs":           {ollamaLogprobsView},
	"thinking-off":       {nativeView, ollamaGenerateView},
	"tool-call":          {viewsWithFigures},
	"two-calls":          {singleCallView},
	"unicode":            {nativeView},
	"verbose":            {viewsWithFigures},
}

// viewsWithFigures are a chat's answer with members of v0.
func viewsWithFigures(t *testing.T, upstream []byte) []view {
	t.Helper()
	stream, _ := rewrite(rewriteOptions{Extra: withFigures}, upstream)
	full, _ := rewrite(rewriteOptions{Extra: withFigures, IncludeUsage: true}, upstream)
	body := gatherInto(&openai.ChatBody{Envelope: envelope, Extra: withFigures}, decode(t, upstream))
	return []view{{"chat stream with figures", stream}, {"chat stream with figures and usage", full}, {"chat body with figures", line(body)}}
}

func singleCallView(_ *testing.T, upstream []byte) []view {
	stream, _ := rewriteFor(&request.Chat{SingleCall: true}, rewriteOptions{}, upstream)
	return []view{{"chat stream of a single call", stream}}
}

func nativeView(t *testing.T, upstream []byte) []view {
	t.Helper()
	stream, _ := nativeStream(t, nil, upstream)
	return []view{{"native stream", stream}}
}

func nativeViewAfterLoad(t *testing.T, upstream []byte) []view {
	t.Helper()
	stream, _ := nativeStream(t, loads, upstream)
	return []view{{"native stream after a load", stream}}
}

// line ends a body that isn't empty with a newline.
func line(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return append(body, '\n')
}

// Each of the two options has its own effect, independent of the other.
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
