package openai

import (
	"bytes"
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TextAnswer is what the choices of an answer to a request for text completions share.
type TextAnswer struct {
	head []byte // start of all chunks and of the body
}

// NewTextAnswer returns an answer. Its id has the form "cmpl-…".
func NewTextAnswer(e Envelope) *TextAnswer {
	head := jsonbody.AppendJSON(nil, textHead{e.ID, "text_completion", e.Created, e.Model, e.Fingerprint})
	return &TextAnswer{head[:len(head)-1]}
}

// AppendUsage appends the chunk with the usage, the last one of a stream.
func (a *TextAnswer) AppendUsage(dst []byte, usage translate.Usage, more []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, a.head...)
	dst = append(dst, `,"choices":[],"usage":`...)
	dst = appendMore(appendTextUsage(dst, usage), more)
	return append(dst, "}\n\n"...)
}

// AppendDone appends the end mark of a stream.
func (a *TextAnswer) AppendDone(dst []byte) []byte {
	return jsonbody.AppendFrame(dst, jsonbody.DoneMark)
}

// Body returns the answer in one piece.
func (a *TextAnswer) Body(choices []*TextChoice, usage translate.Usage, more []byte) []byte {
	list := make([]textChoice, len(choices))
	for i, c := range choices {
		list[i] = textChoice{Index: i, Text: c.text.String(), Finish: c.outcome.Reason}
		if list[i].Logprobs = &c.logprobs; c.Top < 0 {
			list[i].Logprobs = nil
		} else if len(c.logprobs.Tokens) == 0 {
			list[i].Logprobs = &textLogprobs{Tokens: []string{}, Each: []json.Number{}, Top: []textTop{}, Offsets: []int{}}
		}
	}
	body := append(bytes.Clone(a.head), `,"choices":`...)
	body = jsonbody.AppendJSON(body, list)
	body = append(body, `,"usage":`...)
	return append(appendMore(appendTextUsage(body, usage), more), '}')
}

type (
	textHead struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		Model       string `json:"model"`
		Fingerprint string `json:"system_fingerprint,omitempty"`
	}
	textChoice struct {
		Index    int                    `json:"index"`
		Text     string                 `json:"text"`
		Logprobs *textLogprobs          `json:"logprobs"`
		Finish   translate.FinishReason `json:"finish_reason"`
	}
)

// appendTextUsage appends the usage of a text, which has no thoughts.
func appendTextUsage(dst []byte, u translate.Usage) []byte {
	u.Reasoning = 0
	return appendUsage(dst, u)
}

func appendMore(dst, more []byte) []byte {
	if len(more) == 0 {
		return dst
	}
	return append(append(dst, ','), more...)
}
