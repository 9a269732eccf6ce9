package mcploop

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// given returns what the model is given of the content of a result: its texts, up to a number of bytes, its images if the model
// takes them, and of all else what it is.
func (b *Toolbox) given(content json.RawMessage, most int) []translate.Part {
	w := givenWriter{left: most}
	gjson.ParseBytes(content).ForEach(func(_, block gjson.Result) bool {
		b.block(&w, block)
		return true
	})
	if w.cut > 0 {
		w.write(fmt.Sprintf("\n[The result is cut: %d more bytes were left out.]", w.cut))
	}
	w.flush()
	if len(w.parts) == 0 {
		return []translate.Part{{}}
	}
	return w.parts
}

// givenWriter gathers parts, with as much text as there is room for.
type givenWriter struct {
	left, cut int // bytes
	text      strings.Builder
	parts     []translate.Part
}

// add adds a text on a line of its own.
func (w *givenWriter) add(text string) {
	if w.text.Len() > 0 && w.left > 0 {
		w.write("\n")
	}
	if len(text) > w.left {
		end := max(0, w.left)
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		w.cut += len(text) - end
		text, w.left = text[:end], 0
	}
	w.left -= len(text)
	w.write(text)
}

func (w *givenWriter) write(text string) { w.text.WriteString(strings.ToValidUTF8(text, "\uFFFD")) }

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
	case "image":
		data := block.Get("data").Str
		if !b.caps.Vision {
			w.add(described("image", block.Get("mimeType").Str, data))
			return
		}
		image, bad := b.images.Decode("data", []byte(data))
		if bad != nil {
			w.add("[an image that can't be shown]")
			return
		}
		w.flush()
		w.parts = append(w.parts, translate.Part{Image: image})
	case "audio":
		w.add(described(kind, block.Get("mimeType").Str, block.Get("data").Str))
	case "resource":
		resource := block.Get("resource")
		if text := resource.Get("text"); text.Type == gjson.String {
			w.add(text.Str)
			return
		}
		w.add(described("resource "+resource.Get("uri").Str, resource.Get("mimeType").Str, resource.Get("blob").Str))
	case "resource_link":
		w.add("[resource " + strings.Join(strings.Fields(block.Get("name").Str+" "+block.Get("uri").Str+" "+block.Get("description").Str), " ") + "]")
	default:
		w.add(block.Raw)
	}
}

// described describes content that a model can't read.
func described(what, kind, data string) string {
	if kind != "" {
		what += " of type " + kind
	}
	return fmt.Sprintf("[%s, %d bytes]", what, base64.StdEncoding.DecodedLen(len(data)))
}

// leastShortened is how many bytes of a text are left at least when it is shortened.
const leastShortened = 512

// shorten halves the long texts of results, and reports whether there were any. It changes them in place, so that what is stored of a
// result is what the model was given.
func shorten(items []translate.Item) (some bool) {
	for i := range items {
		if items[i].Kind != translate.ItemResult {
			continue
		}
		parts := items[i].Parts
		for k := range parts {
			part := &parts[k]
			text := part.Plain()
			if len(text) < 2*leastShortened {
				continue
			}
			w := givenWriter{left: len(text) / 2}
			w.add(text)
			w.write("\n[The result is cut: it is too long for the context.]")
			part.Text, part.Quoted, some = w.text.String(), nil, true
		}
	}
	return some
}
