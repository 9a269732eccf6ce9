package translate

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxChoices bounds the choices of one request for text completions: its prompts, each as often as n or best_of say.
const maxChoices = 4096

// Completion is what a request for text completions asks for, but for what only the engine has to know of.
type Completion struct {
	Prompts   []json.RawMessage // each a string, or an array of token ids
	N         int               // choices for each prompt
	BestOf    int               // candidates for each prompt, of which the N likeliest are the choices
	Echo      bool              // each choice begins with its prompt
	Suffix    string            // what comes behind the gap that is to be filled; empty: there is none
	Logprobs  int               // the likeliest tokens that are wanted beside each token; negative: no log probabilities at all
	MaxTokens int               // for each choice; negative: no limit
	Stop      []string
	Seed      int
	HasSeed   bool

	edit Edit // of the fields that shape the sampling
}

// completionParser reads a request for text completions.
type completionParser struct{ *Completion }

// ParseCompletion reads a request for text completions. What isn't known here is not sent to an engine.
func ParseCompletion(body *Body, caps Caps) (*Completion, *Error) {
	c := completionParser{&Completion{N: 1, Logprobs: -1, MaxTokens: -1}}
	if err := parseSampling(body, llamaTextFields, caps, &c.edit); err != nil {
		return nil, err
	}
	if err := renamePenalty(body, &c.edit); err != nil {
		return nil, err
	}
	for _, parse := range []func(*Body) *Error{c.parsePrompt, c.parseCounts, c.parseLimit, c.parseStop, c.parseSuffix} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	return c.Completion, nil
}

func (c *completionParser) parsePrompt(body *Body) (err *Error) {
	if c.Prompts, err = texts(body, "prompt"); err != nil {
		return err
	}
	if c.Echo, err = body.Bool("echo"); err != nil {
		return err
	}
	c.Seed, c.HasSeed, err = body.Int("seed")
	return err
}

func (c *completionParser) parseCounts(body *Body) *Error {
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
		return Invalid("invalid_value", "best_of", `"best_of" must be from "n", which is `+strconv.Itoa(c.N)+`, to `+strconv.Itoa(maxChoices)+`.`)
	case c.BestOf > c.N && stream:
		return Invalid("invalid_value", "best_of", `"best_of" can't be streamed, since which answers are best is known only at the end: leave out "best_of" or "stream".`)
	}
	if c.BestOf > maxChoices/len(c.Prompts) {
		param := "n"
		if given {
			param = "best_of"
		}
		return Invalid("invalid_value", param, "The request asks for more than "+strconv.Itoa(maxChoices)+" choices. Send several requests.")
	}
	return c.parseLogprobs(body)
}

func (c *completionParser) parseLogprobs(body *Body) *Error {
	n, given, err := count(body, "logprobs", 0, maxLogprobs)
	if err != nil || !given {
		return err
	}
	if c.Logprobs = n; n > maxLogprobs {
		return Invalid("invalid_value", "logprobs", `"logprobs" must be from 0 to `+strconv.Itoa(maxLogprobs)+`.`)
	}
	if c.Echo {
		return Invalid("unsupported_value", "logprobs",
			`"logprobs" can't be had together with "echo": the engine tells no log probabilities of a prompt's tokens. Leave out one of the two.`)
	}
	return nil
}

// limits are the names of the limit, in the order in which the engine looks for them.
var limits = []string{"n_predict", "max_completion_tokens", "max_tokens"}

func (c *completionParser) parseLimit(body *Body) *Error {
	for _, name := range limits {
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

func (c *completionParser) parseStop(body *Body) (err *Error) {
	c.Stop, err = parseStops(body)
	return err
}

func (c *completionParser) parseSuffix(body *Body) (err *Error) {
	if c.Suffix, err = body.String("suffix"); err != nil || c.Suffix == "" {
		return err
	}
	if slices.ContainsFunc(c.Prompts, isTokens) {
		return Invalid("invalid_type", "prompt", `"prompt" must be text where there is a "suffix".`)
	}
	return nil
}

// count is a whole number that isn't less than least. What is above most, which only the message names, is the caller's to
// refuse.
func count(body *Body, key string, least, most int) (n int, given bool, err *Error) {
	n, given, err = body.Int(key)
	if err == nil && given && n < least {
		return 0, false, Invalid("invalid_value", key, `"`+key+`" must be from `+strconv.Itoa(least)+` to `+strconv.Itoa(most)+`.`)
	}
	return n, given, err
}

// texts reads a field of the form that prompts and inputs have: a string, an array of token ids, or an array of either. An
// empty array is an error; whether an empty string is, the caller knows.
func texts(body *Body, key string) ([]json.RawMessage, *Error) {
	raw := body.Value(key)
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.Null:
		return nil, Missing(key)
	case v.Type == gjson.String:
		return []json.RawMessage{raw}, nil
	case !v.IsArray():
		return nil, wrongType(key, "a string or an array", v)
	}
	items := v.Array()
	if len(items) == 0 {
		return nil, Invalid("invalid_value", key, `"`+key+`" must not be empty.`)
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

func mixed(key string) *Error {
	return Invalid("invalid_type", key, `"`+key+`" must be a string, an array of strings, an array of token ids, or an array of such arrays.`)
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

// isTokens tells whether one of texts is an array of token ids.
func isTokens(text json.RawMessage) bool { return text[0] == '[' }

// Refine makes an engine's error about a completion say which field of the request it is about.
func (c *Completion) Refine(e *Error) *Error {
	refined := *e
	switch {
	case e.Kind == KindContextOverflow:
		refined.Param = "prompt"
	case e.Kind == KindInvalid && e.Param == "" && c.Suffix != "" && strings.Contains(e.Message, "Infill is not supported"):
		return Invalid("unsupported_value", "suffix", `The model can't fill a gap: leave out "suffix", or choose a model that was trained to fill in the middle.`)
	}
	return &refined
}
