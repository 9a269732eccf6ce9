package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// maxChoices bounds the choices of one request for text completions: its prompts, each as often as n or best_of say.
const maxChoices = 4096

// completionParser reads a request for text completions.
type completionParser struct{ *request.Completion }

// ParseCompletion reads a request for text completions. What isn't known here is not sent to an engine.
func ParseCompletion(body *jsonbody.Body, caps request.Caps) (*request.Completion, *translate.Error) {
	c := completionParser{&request.Completion{N: 1, Logprobs: -1, MaxTokens: -1}}
	if err := request.CheckFields(body, &caps, &c.Edit, request.TextSampling, caps.TextFields); err != nil {
		return nil, err
	}
	if err := request.RenamePenalty(body, &c.Edit); err != nil {
		return nil, err
	}
	for _, parse := range []func(*jsonbody.Body) *translate.Error{c.parsePrompt, c.parseCounts, c.parseLimit, c.parseStop, c.parseSuffix} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	return c.Completion, nil
}

func (c *completionParser) parsePrompt(body *jsonbody.Body) (err *translate.Error) {
	if c.Prompts, err = texts(body, "prompt"); err != nil {
		return err
	}
	if c.Echo, err = body.Bool("echo"); err != nil {
		return err
	}
	c.Seed, c.HasSeed, err = body.Int("seed")
	return err
}

func (c *completionParser) parseCounts(body *jsonbody.Body) *translate.Error {
	n, given, err := count(body, "n", 1, maxChoices)
	if err != nil {
		return err
	}
	if given {
		c.N = n
	}
	if c.BestOf, given, err = count(body, "best_of", 1, maxChoices); err != nil {
		return err
	}
	stream, err := body.Bool("stream")
	switch {
	case err != nil:
		return err
	case !given:
		c.BestOf = c.N
	case c.BestOf < c.N:
		return translate.Invalid("invalid_value", "best_of", `"best_of" must be from "n", which is `+strconv.Itoa(c.N)+`, to `+strconv.Itoa(maxChoices)+`.`)
	case c.BestOf > c.N && stream:
		return translate.Invalid("invalid_value", "best_of", `"best_of" can't be streamed, since which answers are best is known only at the end: leave out "best_of" or "stream".`)
	}
	if c.BestOf > maxChoices/len(c.Prompts) {
		param := "n"
		if given {
			param = "best_of"
		}
		return translate.Invalid("invalid_value", param, "The request asks for more than "+strconv.Itoa(maxChoices)+" choices. Send several requests.")
	}
	return c.parseLogprobs(body)
}

func (c *completionParser) parseLogprobs(body *jsonbody.Body) *translate.Error {
	n, given, err := count(body, "logprobs", 0, request.MaxLogprobs)
	if err != nil || !given {
		return err
	}
	if c.Logprobs = n; n > request.MaxLogprobs {
		return translate.Invalid("invalid_value", "logprobs", `"logprobs" must be from 0 to `+strconv.Itoa(request.MaxLogprobs)+`.`)
	}
	if c.Echo {
		return translate.Invalid("unsupported_value", "logprobs",
			`"logprobs" can't be had together with "echo": the engine tells no log probabilities of a prompt's tokens. Leave out one of the two.`)
	}
	return nil
}

func (c *completionParser) parseLimit(body *jsonbody.Body) *translate.Error {
	for _, name := range request.Limits {
		n, given, err := body.Int(name)
		if err != nil {
			return err
		}
		if given {
			c.MaxTokens = min(max(-1, n), math.MaxInt32)
			return nil
		}
	}
	return nil
}

func (c *completionParser) parseStop(body *jsonbody.Body) (err *translate.Error) {
	c.Stop, err = request.ParseStops(body)
	return err
}

func (c *completionParser) parseSuffix(body *jsonbody.Body) (err *translate.Error) {
	if c.Suffix, err = body.String("suffix"); err != nil || c.Suffix == "" {
		return err
	}
	if slices.ContainsFunc(c.Prompts, request.IsTokens) {
		return translate.Invalid("invalid_type", "prompt", `"prompt" must be text where there is a "suffix".`)
	}
	return nil
}

// count is a whole number that isn't less than least. What is above most, which only the message names, is the caller's to
// refuse.
func count(body *jsonbody.Body, key string, least, most int) (n int, given bool, err *translate.Error) {
	n, given, err = body.Int(key)
	if err == nil && given && n < least {
		return 0, false, translate.Invalid("invalid_value", key, `"`+key+`" must be from `+strconv.Itoa(least)+` to `+strconv.Itoa(most)+`.`)
	}
	return n, given, err
}

// texts reads a field of the form that prompts and inputs have: a string, an array of token ids, or an array of either. An
// empty array is an error; whether an empty string is, the caller knows.
func texts(body *jsonbody.Body, key string) ([]json.RawMessage, *translate.Error) {
	raw := body.Value(key)
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.Null:
		return nil, translate.Missing(key)
	case v.Type == gjson.String:
		return []json.RawMessage{raw}, nil
	case !v.IsArray():
		return nil, jsonbody.WrongType(key, "a string or an array", v)
	}
	items := v.Array()
	if len(items) == 0 {
		return nil, translate.Invalid("invalid_value", key, `"`+key+`" must not be empty.`)
	}
	if isToken(items[0]) {
		if !areTokens(items) {
			return nil, mixed(key)
		}
		return []json.RawMessage{raw}, nil
	}
	all := make([]json.RawMessage, len(items))
	for i, item := range items {
		isText := item.Type == gjson.String
		if item.Type != items[0].Type || !isText && (!item.IsArray() || !areTokens(item.Array())) {
			return nil, mixed(key)
		}
		all[i] = json.RawMessage(item.Raw)
	}
	return all, nil
}

func mixed(key string) *translate.Error {
	return translate.Invalid("invalid_type", key, `"`+key+`" must be a string, an array of strings, an array of token ids, or an array of such arrays.`)
}

func areTokens(items []gjson.Result) bool {
	for _, item := range items {
		if !isToken(item) {
			return false
		}
	}
	return len(items) > 0
}

func isToken(v gjson.Result) bool {
	return v.Type == gjson.Number && v.Num >= 0 && v.Num <= math.MaxInt32 && !strings.ContainsAny(v.Raw, ".eE-")
}
