package anthropic

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
)

// TestMessages_BeginsAnew: a request that is sent to a second engine has one start, and nothing of the first answer.
func TestMessages_BeginsAnew(t *testing.T) {
	t.Parallel()
	s := &Stream{ID: "msg_0"}
	s.Begin("m", 4096)
	dst := s.Append(nil, translate.Prompt{Total: 9})
	dst = s.Append(dst, translate.Text{Text: "\n"})
	if !s.IsEmpty() {
		t.Fatal("the stream isn't empty")
	}
	s.Begin("m", 4096)
	for _, ev := range []translate.Event{translate.Prompt{Total: 9}, translate.Text{Text: "Hi"}, translate.Finish{Reason: translate.FinishStop}} {
		dst = s.Append(dst, ev)
	}
	got, err := testkit.Message(dst)
	if err != nil || s.IsEmpty() {
		t.Fatal(err)
	}
	if text := got["content"].([]any)[0].(map[string]any)["text"]; text != "Hi" {
		t.Errorf("%q", text)
	}
}

func TestThinking_SignatureOfOmittedThoughtsHasThem(t *testing.T) {
	t.Parallel()
	const thought = "I \"call\"\n é"
	if got := signedThought(ThinkingOmitted.signature([]byte(thought))); got != thought {
		t.Errorf("%q", got)
	}
	for _, other := range []string{"", "lm", "lmo1", "lmo1%", ThinkingShown.signature([]byte(thought))} {
		if got := signedThought(other); got != "" {
			t.Errorf("%q has %q", other, got)
		}
	}
}
