package mcploop

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/picture"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// given returns what the model is given of a result: its texts, its images if the model takes them, and of all else what it is.
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

type givenWriter struct {
	text  strings.Builder
	parts []translate.Part
}

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
	const enough = 32
	head, _ := base64.StdEncoding.AppendDecode(nil, []byte(data[:min(len(data), enough)])) // up to what is no base64
	isImage := what == "image" || picture.HasMagic(head)
	if mimeType != "" {
		what += " of type " + mimeType
	}
	what = fmt.Sprintf("%s, %d bytes", what, base64.StdEncoding.DecodedLen(len(data)))
	if !b.caps.Vision || !isImage {
		w.add("[" + what + "]")
		return
	}
	image, bad := b.media.Decode(request.MediumImage, "data", []byte(data))
	if bad != nil {
		w.add("[" + what + ", an image that can't be shown]")
		return
	}
	w.flush()
	w.parts = append(w.parts, translate.Part{Media: image})
}

const leastGiven = 128

// givenText is a text of a result, of which the model may be given less than there is.
type givenText struct {
	part *translate.Part // of the conversation, and of what is stored of it
	size int             // bytes of the part that are the result's, and no note
	left int             // bytes of the result that were left out

	tokens int // about as many as the size has
}

type givenTexts []givenText

func textsOf(given []translate.Part) (texts givenTexts) {
	for i := range given {
		if part := &given[i]; part.Media == nil {
			tokens, size := measured(part.Text, math.MaxInt)
			texts = append(texts, givenText{part: part, size: size, tokens: tokens})
		}
	}
	return texts
}

func (t givenTexts) tokens() (sum int) {
	for i := range t {
		sum += t[i].tokens
	}
	return sum
}

// cut cuts the longest texts to one length, of at least [leastGiven] each, so that all have about most tokens. It reports whether any was.
func (t givenTexts) cut(most int) (some bool) {
	lengths := make([]int, len(t))
	for i := range t {
		lengths[i] = t[i].tokens
	}
	slices.Sort(lengths)
	for i, length := range lengths {
		if share := most / (len(lengths) - i); length > share {
			for k := range t {
				some = t[k].cut(max(share, leastGiven)) || some
			}
			return some
		}
		most -= length
	}
	return false
}

// cut cuts the text to about a number of tokens, and tells the model how many bytes it doesn't see.
func (t *givenText) cut(most int) bool {
	if t.tokens <= most {
		return false
	}
	tokens, size := measured(t.part.Text[:t.size], most)
	t.left += t.size - size
	t.size, t.tokens = size, tokens
	t.part.Text = strings.Clone(t.part.Text[:size]) + fmt.Sprintf("\n[The result is cut: %d more bytes were left out.]", t.left)
	return true
}

// measured estimates the tokens of the longest beginning of a text that has at most so many, and returns its bytes. It knows no vocabulary:
// usually, a word with the space before it is a token or two, and what forms no words, such as base64, one for each character.
func measured(text string, most int) (tokens, size int) {
	const (
		piece    = 6  // letters of a word for each token
		longWord = 18 // letters; no word of a language
		indent   = 4  // spaces for each token, after the first
	)
	letters, spaces := 0, 0 // of the run that ends here
	for i, r := range text {
		cost := 1
		switch isLetter := r|0x20 >= 'a' && r|0x20 <= 'z'; {
		case isLetter:
			if letters < longWord && letters%piece > 0 {
				cost = 0
			}
			letters, spaces = letters+1, 0
		case r == ' ':
			if spaces%indent != indent-1 {
				cost = 0
			}
			letters, spaces = 0, spaces+1
		default:
			if r > math.MaxUint16 { // such as emoji
				cost = 2
			}
			letters, spaces = 0, 0
		}
		if tokens+cost > most {
			return tokens, i
		}
		tokens += cost
	}
	return tokens, len(text)
}
