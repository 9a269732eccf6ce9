package openai

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseCompletion parses a request for text completions. Unknown fields are not sent to an engine.
func ParseCompletion(body *jsonbody.Body, caps request.Caps) (*request.Completion, *translate.Error) {
	c := completionParser{&request.Completion{N: 1, Logprobs: -1, MaxTokens: -1, Seed: request.RandomSeed}}
	if err := request.CheckFields(body, &caps, &c.Edit, request.TextSampling, caps.TextFields); err != nil {
		return nil, err
	}
	if err := request.RenamePenalty(body, &c.Edit); err != nil {
		return nil, err
	}
	for _, parse := range []func(*jsonbody.Body) *translate.Error{c.parsePrompt, c.parseCounts, c.parseEnd} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	return c.Completion, nil
}

// maxChoices is the maximum number of choices of a request for text completions: n or best_of for each of its prompts.
const maxChoices = 4096

type completionParser struct{ *request.Completion }

func (c *completionParser) parsePrompt(body *jsonbody.Body) (err *translate.Error) {
	if c.Prompts, err = texts(body, "prompt", maxChoices); err != nil {
		return err
	}
	if c.Echo, err = body.Bool("echo"); err != nil {
		return err
	}
	if seed := body.Value("seed"); jsonbody.IsGiven(seed) {
		c.Seed, err = request.ParseSeed("seed", gjson.ParseBytes(seed))
	}
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

// parseEnd parses where the text ends, and what comes after it.
func (c *completionParser) parseEnd(body *jsonbody.Body) (err *translate.Error) {
	for _, name := range request.Limits {
		n, given, err := body.Int(name)
		if err != nil {
			return err
		}
		if given {
			c.MaxTokens = min(max(-1, n), math.MaxInt32)
			break
		}
	}
	if c.Stop, err = request.ParseStops(body); err != nil {
		return err
	}
	if c.Suffix, err = body.String("suffix"); err == nil && c.Suffix != "" && slices.ContainsFunc(c.Prompts, request.IsTokens) {
		err = translate.Invalid("invalid_type", "prompt", `"prompt" must be text where there is a "suffix".`)
	}
	return err
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

// texts parses a field of prompts or inputs: a string, an array of token ids, or an array of either. An empty array is an
// error, an empty string isn't. Of more than most, one more is returned: the caller rejects them.
func texts(body *jsonbody.Body, key string, most int) ([]json.RawMessage, *translate.Error) {
	raw := body.Value(key)
	switch {
	case !jsonbody.IsGiven(raw):
		return nil, translate.Missing(key)
	case raw[0] == '"', areTokens(raw):
		return []json.RawMessage{raw}, nil
	case jsonbody.TypeOf(raw) != jsonbody.AnArray:
		return nil, jsonbody.WrongJSON(key, "a string or an array", raw)
	}
	var all []json.RawMessage
	for item := range jsonbody.Elements(raw) {
		if item[0] != '"' && !areTokens(item) || len(all) > 0 && (item[0] == '"') != (all[0][0] == '"') {
			return nil, translate.Invalid("invalid_type", key, `"`+key+`" must be a string, an array of strings, an array of token ids, or an array of such arrays.`)
		}
		if all = append(all, item); len(all) > most {
			break
		}
	}
	if len(all) == 0 {
		return nil, translate.Invalid("invalid_value", key, `"`+key+`" must not be empty.`)
	}
	return all, nil
}

// areTokens reports whether a value is an array of token ids. It keeps none of them: there may be millions.
func areTokens(value []byte) bool {
	has := false
	for item := range jsonbody.Elements(value) {
		if _, err := strconv.ParseUint(string(item), 10, 31); err != nil {
			return false
		}
		has = true
	}
	return has
}

// count parses a whole number that is at least least. most is for the message only: the caller rejects larger numbers.
func count(body *jsonbody.Body, key string, least, most int) (n int, given bool, err *translate.Error) {
	n, given, err = body.Int(key)
	if err == nil && given && n < least {
		return 0, false, translate.Invalid("invalid_value", key, `"`+key+`" must be from `+strconv.Itoa(least)+` to `+strconv.Itoa(most)+`.`)
	}
	return n, given, err
}
