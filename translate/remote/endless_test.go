package remote

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestDecoder_EndsAnAnswerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	d := New(Model{Kind: OpenAI, Remote: "gpu1", Name: "m"}).Decoder().(*decoder)
	d.bytes = maxAnswer - 100
	var last translate.Event
	emit := func(e translate.Event) error {
		last = e
		return nil
	}
	for range 3 {
		if err := d.Feed([]byte(`data: {"choices":[{"delta":{"content":"more"}}]}`+"\n\n"), emit); err != nil {
			t.Fatal(err)
		}
	}
	if fault, ok := last.(translate.Fault); !ok || !strings.Contains(fault.Err.Message, "gpu1 went on answering without an end") {
		t.Errorf("the last event is %#v", last)
	}
}
