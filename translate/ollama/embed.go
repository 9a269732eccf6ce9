package ollama

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Embed is a request of POST /api/embed or POST /api/embeddings.
type Embed struct {
	Model      string            // as the client calls it
	Inputs     []json.RawMessage // JSON strings, parts of the request's body
	Dimensions int               // 0, or more than there are: all
	Truncates  bool              // texts that are too long are cut
	KeepAlive  *time.Duration
	Context    int // tokens, if this request loads the model; 0: not given
	IsSingle   bool
}

// maxInputs is the maximum number of texts in a request.
const maxInputs = 4096

// ParseEmbed parses a request of POST /api/embed. One without texts only loads the model.
func ParseEmbed(body *jsonbody.Body, caps request.Caps) (*Embed, *translate.Error) {
	e, err := parseEmbed(body, caps)
	if err != nil {
		return nil, err
	}
	b := body.Fields()
	e.Truncates = b.BoolOr("truncate", true)
	n, given := b.Int("dimensions")
	switch {
	case b.Err != nil:
		return nil, b.Err
	case given && (n < 0 || n > math.MaxInt32):
		return nil, translate.BadValue("dimensions", "must be from 0, for all of them, to %d.", math.MaxInt32)
	}
	e.Dimensions = n
	input := body.Value("input")
	switch {
	case !jsonbody.IsGiven(input), string(input) == `""`:
		return e, nil
	case isString(input):
		e.Inputs = []json.RawMessage{input}
		return e, nil
	case input[0] != '[':
		return nil, translate.Invalid("invalid_type", "input", "invalid input type: \"input\" must be a string or an array of strings")
	}
	for text := range jsonbody.Elements(input) {
		switch i := len(e.Inputs); {
		case !isString(text):
			at := inputAt(i)
			return nil, translate.Invalid("invalid_type", at, `invalid input type: "`+at+`" must be a string`)
		case len(text) == len(`""`):
			return nil, translate.BadValue(inputAt(i), "must not be empty.")
		case i == maxInputs:
			return nil, translate.BadValue("input", "must hold at most %d texts. Send several requests.", maxInputs)
		}
		e.Inputs = append(e.Inputs, text)
	}
	return e, nil
}

func inputAt(i int) string { return "input[" + strconv.Itoa(i) + "]" }

// ParseEmbeddings parses a request of POST /api/embeddings, for one text.
func ParseEmbeddings(body *jsonbody.Body, caps request.Caps) (*Embed, *translate.Error) {
	e, err := parseEmbed(body, caps)
	if err != nil {
		return nil, err
	}
	b := body.Fields()
	if prompt := givenText(b, "prompt"); prompt != nil {
		e.Inputs = []json.RawMessage{prompt}
	}
	e.IsSingle = true
	return e, b.Err
}

func parseEmbed(body *jsonbody.Body, caps request.Caps) (*Embed, *translate.Error) {
	r, err := parse(body, caps) // which knows the options
	if err != nil {
		return nil, err
	}
	return &Embed{Model: r.Model, KeepAlive: r.KeepAlive, Context: r.Context, Truncates: true}, nil
}

// Part returns a request to an engine for the embeddings of some of the texts.
func Part(texts []json.RawMessage) *request.Embedding {
	return &request.Embedding{Inputs: texts, IsPart: true}
}

// Shorter returns the beginning of a text of which an engine has said that it is too long. It is empty if nothing is left.
func Shorter(text string, tooLong *translate.Error) string {
	size := len(text) / 2
	if tooLong.Tokens > tooLong.Limit && tooLong.Limit > 0 {
		size = min(len(text)-1, int(float64(len(text))*float64(tooLong.Limit)/float64(tooLong.Tokens)*enough))
	}
	return strings.ToValidUTF8(text[:max(0, size)], "")
}

// enough is the share of what a text may have by its mean number of bytes to a token, so that few are cut twice.
const enough = 0.95

// TooLong returns the error of a text that is too long and must not be cut.
func TooLong(e *translate.Error) *translate.Error {
	other := *e
	other.Param = "input"
	other.Message = "the input length exceeds the context length: " + e.Message
	return &other
}

// AppendBody appends the response.
func (e *Embed) AppendBody(dst []byte, got *request.Embedded, total, load time.Duration) []byte {
	if e.IsSingle {
		dst = append(dst, `{"embedding":`...)
		if len(got.Vectors) == 0 {
			return append(dst, "[]}"...)
		}
		return append(request.AppendVector(dst, got.Vectors[0]), '}')
	}
	dst = jsonbody.AppendString(append(dst, `{"model":`...), e.Model)
	dst = append(dst, `,"embeddings":[`...)
	for _, vector := range got.Vectors {
		if e.Dimensions > 0 && e.Dimensions*4 < len(vector) {
			vector = request.ShortVector(vector, e.Dimensions)
		}
		dst = request.AppendVector(jsonbody.AppendComma(dst), vector)
	}
	dst = appendNumber(append(dst, ']'), "total_duration", total.Nanoseconds())
	dst = appendNumber(dst, "load_duration", load.Nanoseconds())
	return append(appendNumber(dst, "prompt_eval_count", int64(got.Prompt)), '}')
}
