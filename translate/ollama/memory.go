package ollama

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Memory is what a request of POST /api/generate is to remember: the field context of an answer, which clients send back with their
// next request. Ollama's is a list of tokens, which clients take for numbers that mean nothing to them. Here it holds the texts, so
// that it doesn't depend on the model and the engine.
type Memory struct {
	System string
	Turns  []translate.Part // the prompts and the answers to them, in turn: texts
}

// The numbers of a context: the first marks it, each other one holds three bytes of a JSON array of texts, which ends in spaces.
const (
	contextMark   = 'L'<<16 | 'M'<<8 | 1
	contextBytes  = 3
	contextNumber = 1 << (8 * contextBytes)
)

// maxMemory is how many bytes of texts are remembered. An answer to a longer conversation has no context.
const maxMemory = 1 << 20

// maxEncoded is more than the bytes of any context, also of one whose texts have to be escaped.
const maxEncoded = 8 * maxMemory

func (m *Memory) fits(answer int) bool {
	size := len(m.System) + answer
	for i := range m.Turns {
		size += len(m.Turns[i].Text) + len(m.Turns[i].Quoted) // which is at least the text
	}
	for i := 0; size > maxMemory && i < len(m.Turns); i++ {
		if turn := &m.Turns[i]; turn.Quoted != nil {
			size += len(turn.Plain()) - len(turn.Quoted)
		}
	}
	return size <= maxMemory
}

// Append appends the context of an answer: what was said before it, and the answer. It is empty if that is too much to remember.
func (m *Memory) Append(dst, answer []byte) []byte {
	dst = append(dst, '[')
	if !m.fits(len(answer)) {
		return append(dst, ']')
	}
	texts := jsonbody.AppendString([]byte{'['}, m.System)
	for i := range m.Turns {
		texts = append(texts, ',')
		if quoted := m.Turns[i].Quoted; quoted != nil {
			texts = append(append(append(texts, '"'), quoted...), '"')
		} else {
			texts = jsonbody.AppendString(texts, m.Turns[i].Text)
		}
	}
	texts = append(jsonbody.AppendString(append(texts, ','), string(answer)), ']')
	for len(texts)%contextBytes > 0 {
		texts = append(texts, ' ')
	}
	dst = strconv.AppendInt(dst, contextMark, 10)
	for ; len(texts) > 0; texts = texts[contextBytes:] {
		dst = strconv.AppendInt(append(dst, ','), int64(texts[0])<<16|int64(texts[1])<<8|int64(texts[2]), 10)
	}
	return append(dst, ']')
}

// parseContext returns what a context holds. An absent or empty one holds nothing.
func parseContext(given gjson.Result) (*Memory, *translate.Error) {
	switch {
	case given.Type == gjson.Null:
		return &Memory{}, nil
	case !given.IsArray():
		return nil, jsonbody.WrongType("context", "an array of numbers", given)
	}
	encoded, err := contextTexts(given)
	if err != nil || len(encoded) == 0 {
		return &Memory{}, err
	}
	var texts []string
	if json.Unmarshal(encoded, &texts) != nil || len(texts)%2 == 0 || len(texts) > request.MaxMessages {
		return nil, foreignContext()
	}
	m := &Memory{System: texts[0], Turns: make([]translate.Part, len(texts)-1)}
	for i := range m.Turns {
		m.Turns[i].Text = texts[i+1]
	}
	return m, nil
}

func contextTexts(given gjson.Result) (encoded []byte, err *translate.Error) {
	i := 0
	given.ForEach(func(_, v gjson.Result) bool {
		n := v.Int()
		switch {
		case v.Type != gjson.Number:
			err = jsonbody.WrongType("context["+strconv.Itoa(i)+"]", "a number", v)
		case n < 0 || n >= contextNumber || float64(n) != v.Num || i == 0 && n != contextMark || len(encoded) > maxEncoded:
			err = foreignContext()
		case i > 0:
			encoded = append(encoded, byte(n>>16), byte(n>>8&0xff), byte(n&0xff))
		}
		i++
		return err == nil
	})
	return encoded, err
}

func foreignContext() *translate.Error {
	return unsupported("context",
		`this server can't read "context": send it as it was in the last answer, leave it out, or send the messages to /api/chat`)
}
