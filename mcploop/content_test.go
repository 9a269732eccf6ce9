package mcploop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// pixel is a PNG image of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestGiven(t *testing.T) {
	t.Parallel()
	image := `{"type":"image","mimeType":"image/png","data":"` + pixel + `"}`
	for name, tt := range map[string]struct {
		content string
		room    int
		want    string
	}{
		"a text":             {`[{"type":"text","text":"a"}]`, 100, "a"},
		"texts":              {`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, 100, "a\nb"},
		"nothing":            {`[]`, 100, ""},
		"a long text":        {`[{"type":"text","text":"aéiou"},{"type":"text","text":"more"}]`, 2, "a\n[The result is cut: 9 more bytes were left out.]"},
		"an image":           {`[` + image + `]`, 100, "[image of type image/png, 72 bytes]"},
		"a sound":            {`[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]`, 100, "[audio of type audio/wav, 3 bytes]"},
		"a resource of text": {`[{"type":"resource","resource":{"uri":"file:///a","text":"hello"}}]`, 100, "hello"},
		"a resource":         {`[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}}]`, 100, "[resource file:///a, 3 bytes]"},
		"a link":             {`[{"type":"resource_link","uri":"file:///a","name":"A","description":"b\nc"}]`, 100, "[resource A file:///a b c]"},
		"something new":      {`[{"type":"hologram","x":1}]`, 100, `{"type":"hologram","x":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&Toolbox{}).given(json.RawMessage(tt.content), tt.room)
			if diff := cmp.Diff([]translate.Part{{Text: tt.want}}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	sighted := &Toolbox{caps: request.Caps{Vision: true}}
	got := sighted.given(json.RawMessage(`[{"type":"text","text":"See:"},`+image+`,{"type":"image","data":"AAAA"},{"type":"text","text":"!"}]`), 100)
	if len(got) != 3 || got[0].Text != "See:" || got[1].Image == nil || got[2].Text != "[an image that can't be shown]\n!" {
		t.Errorf("%+v", got)
	}
}

// A long text of the request's body is shortened like any other.
func TestShorten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`a\n`, leastShortened)
	items := []translate.Item{
		{Kind: translate.ItemMessage, Parts: []translate.Part{{Quoted: []byte(long)}}},
		{Kind: translate.ItemResult, Parts: []translate.Part{{Quoted: []byte(long)}, {Text: "b"}}},
	}
	if !shorten(items) || shorten(items[:1]) {
		t.Error("other items than results were shortened, or none")
	}
	want := strings.Repeat("a\n", leastShortened/2) + "\n[The result is cut: it is too long for the context.]"
	if got := items[1].Parts[0].Plain(); got != want || items[0].Parts[0].Plain() != strings.Repeat("a\n", leastShortened) {
		t.Errorf("%q, want %q", got, want)
	}
}
