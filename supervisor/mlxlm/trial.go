package mlxlm

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// Trial returns the request for one token. It has a prompt and no messages, which a model's template could refuse, and a bias of nothing:
// the server would apply those of the next request to another if a request before had none.
func (p *Process) Trial() (path string, body []byte) {
	return "/v1/completions", []byte(`{"model":"default_model","prompt":"Hi","max_tokens":1,"temperature":0,"logit_bias":{"0":0}}`)
}

// Tried returns nil for an answer with a choice. If the model can't be loaded, the server answers with status 404 and the reason.
func (p *Process) Tried(status int, answer []byte) error {
	parsed := gjson.ParseBytes(answer)
	switch reason := parsed.Get("error"); {
	case status == http.StatusOK && parsed.Get("choices.0").IsObject():
		return nil
	case reason.Type == gjson.String && reason.Str != "":
		return errors.New(withoutPaths(reason.Str))
	case status == http.StatusOK:
		return errors.New("what answers a first request is no mlx_lm.server")
	default:
		return fmt.Errorf("the engine answered a first request with status %d", status)
	}
}

// progress matches the comments by which the server tells how far a prompt is: ": keepalive 2048/8191".
var progress = regexp.MustCompile(`(?m)^: keepalive (\d{1,9})/\d{1,9}$`)

// Pace parses the last such comment in a piece of an answer. The time that it took isn't known.
func (p *Process) Pace(piece []byte) (process.Pace, bool) {
	all := progress.FindAllSubmatch(piece, -1)
	if len(all) == 0 {
		return process.Pace{}, false
	}
	tokens, err := strconv.Atoi(string(all[len(all)-1][1]))
	return process.Pace{Tokens: tokens}, err == nil
}
