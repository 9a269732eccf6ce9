package ollama

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Progress is a line of the response to POST /api/pull or /api/create.
type Progress struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"`
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// AppendLine appends the line.
func (p Progress) AppendLine(dst []byte) []byte { return append(jsonbody.AppendJSON(dst, p), '\n') }

// Streams returns whether a request is answered in lines, which is the default.
func Streams(body *jsonbody.Body) (bool, *translate.Error) {
	if !jsonbody.IsGiven(body.Value("stream")) {
		return true, nil
	}
	return body.Bool("stream")
}
