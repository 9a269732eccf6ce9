package openai

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestChatBody_ReasoningField(t *testing.T) {
	t.Parallel()
	events := []translate.Event{translate.Reasoning{Text: "Hm"}, translate.Reasoning{Text: "m."}, translate.Text{Text: "Hi"}, translate.Usage{Prompt: 3, Cached: 1, Completion: 2}, translate.Finish{Reason: translate.FinishStop}}
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
	if got := gather("", []translate.Event{translate.Prompt{}, translate.Text{Text: "Hi"}, translate.Usage{}, translate.Fault{Err: translate.BrokenOff()}}); len(got) > 0 {
		t.Errorf("body: %s", got)
	}
}
