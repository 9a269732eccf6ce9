package responses

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

type echoedReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// parseReasoning sets the effort that is nearest to the wanted one among those that the model offers. A summary may be asked for,
// but reasoning is always shown in full.
func (r *Request) parseReasoning(body *jsonbody.Body, caps request.Caps) *translate.Error {
	r.Chat.Thinks = caps.Thinks()
	given := body.Get("reasoning")
	switch {
	case given.Type == gjson.Null:
		return nil
	case !given.IsObject():
		return jsonbody.WrongType("reasoning", "an object", given)
	}
	summary, err := oneOf("reasoning.summary", given.Get("summary"), "auto", "concise", "detailed")
	if err != nil {
		return err
	}
	effort, err := oneOf("reasoning.effort", given.Get("effort"), request.Efforts...)
	if err != nil {
		return err
	}
	r.echo.Reasoning = echoedReasoning{orNil(effort), orNil(summary)}
	offered := caps.Efforts()
	if effort == "" || len(offered) == 0 {
		return nil
	}
	nearest := request.NearestEffort(slices.Index(request.Efforts, effort), offered)
	r.edit.Set("reasoning_effort", `"`+nearest+`"`)
	switch {
	case nearest == request.Efforts[0]:
		r.edit.Set("chat_template_kwargs", `{"enable_thinking":false}`)
		r.Chat.Thinks = r.Chat.Thinks && !caps.CanBeSilent()
	case caps.CanBeSilent(): // otherwise the model always thinks
		r.edit.Set("chat_template_kwargs", `{"enable_thinking":true}`)
	}
	return nil
}

// oneOf reads a word, which may be null.
func oneOf(where string, v gjson.Result, words ...string) (string, *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return "", nil
	case v.Type != gjson.String:
		return "", jsonbody.WrongType(where, "a string", v)
	case !slices.Contains(words, v.Str):
		return "", translate.Invalid("invalid_value", where, `"`+where+`" must be one of: `+strings.Join(words, ", ")+`; not `+request.QuoteShort(v.Str)+`.`)
	default:
		return v.Str, nil
	}
}
