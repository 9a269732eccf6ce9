package mcploop

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/picture"
	"github.com/lmcaddy/lmcaddy/translate"
)

// given returns what the model is given of the content of a result: its texts, its images if the model takes them, and of all else
// what it is.
func (b *Toolbox) given(content json.RawMessage) []translate.Part {
	var w givenWriter
	gjson.ParseBytes(content).ForEach(func(_, block gjson.Result) bool {
		b.block(&w, block)
		return true
	})
	w.flush()
	if len(w.parts) == 0 {
		return []translate.Part{{}}
	}
	return w.parts
}

// givenWriter gathers parts.
type givenWriter struct {
	text  strings.Builder
	parts []translate.Part
}

// add adds a text on a line of its own.
func (w *givenWriter) add(text string) {
	if w.text.Len() > 0 {
		w.text.WriteByte('\n')
	}
	w.text.WriteString(strings.ToValidUTF8(text, "\uFFFD"))
}

func (w *givenWriter) flush() {
	if w.text.Len() > 0 {
		w.parts = append(w.parts, translate.Part{Text: w.text.String()})
		w.text.Reset()
	}
}

// block adds a block of MCP's content.
func (b *Toolbox) block(w *givenWriter, block gjson.Result) {
	switch kind := block.Get("type").Str; kind {
	case "text":
		w.add(block.Get("text").Str)
	case "image", "audio":
		b.blob(w, kind, block.Get("mimeType").Str, block.Get("data").Str)
	case "resource":
		resource := block.Get("resource")
		if text := resource.Get("text"); text.Type == gjson.String {
			w.add(text.Str)
			return
		}
		b.blob(w, "resource "+resource.Get("uri").Str, resource.Get("mimeType").Str, resource.Get("blob").Str)
	case "resource_link":
		w.add("[resource " + strings.Join(strings.Fields(block.Get("name").Str+" "+block.Get("uri").Str+" "+block.Get("description").Str),
			" ") + "]")
	default:
		w.add(block.Raw)
	}
}

// blob adds base64 of anything: an image if it is one and the model takes them, whatever type its server says it has, and else what it is.
func (b *Toolbox) blob(w *givenWriter, what, mimeType, data string) {
	isImage := what == "image" || isPicture(data)
	if mimeType != "" {
		what += " of type " + mimeType
	}
	what = fmt.Sprintf("%s, %d bytes", what, base64.StdEncoding.DecodedLen(len(data)))
	if !b.caps.Vision || !isImage {
		w.add("[" + what + "]")
		return
	}
	image, bad := b.images.Decode("data", []byte(data))
	if bad != nil {
		w.add("[" + what + ", an image that can't be shown]")
		return
	}
	w.flush()
	w.parts = append(w.parts, translate.Part{Image: image})
}

// isPicture reports whether base64 begins like that of an image.
func isPicture(data string) bool {
	const enough = 32
	head, _ := base64.StdEncoding.AppendDecode(nil, []byte(data[:min(len(data), enough)])) // up to what is no base64
	return picture.HasMagic(head)
}
