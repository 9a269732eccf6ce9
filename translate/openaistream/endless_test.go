package openaistream

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// options are those of a remote.
var options = Options{
	Fault:    func(int, gjson.Result) *translate.Error { return translate.Nonsense() },
	Nonsense: func() *translate.Error { return &translate.Error{Message: "The answer can't be read."} },
	Endless:  func() *translate.Error { return &translate.Error{Message: "It went on answering without an end."} },
}

func TestDecoder_EndsAnAnswerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	d := New(options)
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
	if fault, ok := last.(translate.Fault); !ok || !strings.Contains(fault.Err.Message, "went on answering without an end") {
		t.Errorf("the last event is %#v", last)
	}
}

// What a server sends is read no further than what was asked for.
func TestDecoder_ReadsNoMoreThanWasAskedFor(t *testing.T) {
	t.Parallel()
	const piece = `data: {"choices":[{"delta":{"content":"more"}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		limit int
		begin string
		sends string
		most  int // bytes that are read
		text  int // pieces that the client gets
		want  string
	}{
		"it ignores the limit":    {10, "", piece, 60 * len(piece), 53, "length"},
		"its thoughts, too":       {10, "", strings.ReplaceAll(piece, "content", "reasoning"), 60 * len(piece), 0, "length"},
		"one endless line":        {10, `data: {"choices":[{"delta":{"content":"`, "more", 400 << 10, 0, "can't be read"},
		"without a limit":         {0, `data: {"choices":[{"delta":{"content":"`, strings.Repeat("more", 1000), 5 << 20, 0, "can't be read"},
		"an endless document":     {10, `{"choices":[{"message":{"content":"`, "more", 400 << 10, 0, "can't be read"},
		"nothing again and again": {10, "", `data: {"choices":[{"delta":{"content":""}}]}` + "\n\n", 2 << 20, 0, "without an end"},
		"comments":                {10, "", ": ping\n\n", 2 << 20, 0, "without an end"},
		"it goes on at its end":   {10, piece + `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", piece, 17 << 10, 1, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(options)
			d.Limit(tt.limit)
			text, end := 0, ""
			emit := func(e translate.Event) error {
				switch e := e.(type) {
				case translate.Text:
					text++
				case translate.Fault:
					end = e.Err.Message
				case translate.Finish:
					end = string(e.Reason)
				}
				return nil
			}
			read := len(tt.begin)
			err := d.Feed([]byte(tt.begin), emit)
			for err == nil && (end == "" || end == "stop") && read <= tt.most {
				read += len(tt.sends)
				err = d.Feed([]byte(tt.sends), emit)
			}
			if !strings.Contains(end, tt.want) || text != tt.text || read > tt.most || tt.want == "stop" && err == nil {
				t.Errorf("it ends with %q (%v) after %d bytes and %d pieces, want %q after at most %d, and %d pieces", end, err, read, text, tt.want, tt.most, tt.text)
			}
		})
	}
}
