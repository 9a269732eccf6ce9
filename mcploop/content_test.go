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
		want    string
	}{
		"a text":             {`[{"type":"text","text":"a"}]`, "a"},
		"texts":              {`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "a\nb"},
		"nothing":            {`[]`, ""},
		"an image":           {`[` + image + `]`, "[image of type image/png, 72 bytes]"},
		"a sound":            {`[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]`, "[audio of type audio/wav, 3 bytes]"},
		"a resource of text": {`[{"type":"resource","resource":{"uri":"file:///a","text":"hello"}}]`, "hello"},
		"a resource":         {`[{"type":"resource","resource":{"uri":"file:///a","blob":"AAAA"}}]`, "[resource file:///a, 3 bytes]"},
		"a link":             {`[{"type":"resource_link","uri":"file:///a","name":"A","description":"b\nc"}]`, "[resource A file:///a b c]"},
		"something new":      {`[{"type":"hologram","x":1}]`, `{"type":"hologram","x":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&Toolbox{}).given(json.RawMessage(tt.content))
			if diff := cmp.Diff([]translate.Part{{Text: tt.want}}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A model with vision gets images, as blocks and as resources, whatever type they are said to have.
func TestGiven_Images(t *testing.T) {
	t.Parallel()
	resource := func(more, blob string) string {
		return `{"type":"resource","resource":{"uri":"file:///a",` + more + `"blob":"` + blob + `"}}`
	}
	for name, tt := range map[string]struct{ block, want string }{
		"an image":                   {`{"type":"image","mimeType":"image/png","data":"` + pixel + `"}`, "an image"},
		"a resource":                 {resource(`"mimeType":"image/png",`, pixel), "an image"},
		"a resource of another type": {resource(`"mimeType":"application/octet-stream",`, pixel), "an image"},
		"a resource of no type":      {resource("", pixel), "an image"},
		"no image":                   {`{"type":"image","mimeType":"image/png","data":"AAAA"}`, "[image of type image/png, 3 bytes, an image that can't be shown]"},
		"half an image":              {resource(`"mimeType":"image/png",`, pixel[:40]), "[resource file:///a of type image/png, 30 bytes, an image that can't be shown]"},
		"a resource of another kind": {resource(`"mimeType":"image/png",`, "AAAA"), "[resource file:///a of type image/png, 3 bytes]"},
		"a sound":                    {`{"type":"audio","mimeType":"audio/wav","data":"AAAA"}`, "[audio of type audio/wav, 3 bytes]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sighted := &Toolbox{caps: request.Caps{Vision: true}}
			var got []string
			for _, part := range sighted.given(json.RawMessage(`[{"type":"text","text":"See:"},` + tt.block + `,{"type":"text","text":"!"}]`)) {
				if part.Media != nil {
					part.Text = "an image"
				}
				got = append(got, part.Text)
			}
			if diff := cmp.Diff("See:\n"+tt.want+"\n!", strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			blind := (&Toolbox{}).given(json.RawMessage("[" + tt.block + "]"))
			if len(blind) != 1 || !strings.HasSuffix(blind[0].Text, " bytes]") {
				t.Errorf("a model without vision gets %+v", blind)
			}
		})
	}
}
