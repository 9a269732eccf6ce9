// Package request defines the requests that engines serve, independent of the client's dialect: chats, text completions,
// embeddings and ranks. It also validates their fields, so that an engine receives nothing unchecked.
package request

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Chat is a chat request, without the fields that only the engine needs. Edit has the fields that the engine is sent in
// another form than the client's.
type Chat struct {
	N          int             // number of choices
	NoTools    bool            // the model is offered no tools
	SingleCall bool            // parallel_tool_calls is false
	Logprobs   bool            // the client wants log probabilities
	OnlyChosen bool            // the client wants log probabilities of the chosen tokens only
	Timings    bool            // the client wants the engine's measurements in the stream
	Forced     bool            // the answer must be a call of one of the tools
	Either     *Either         // the answer may be such a call, but otherwise has to be in a format; nil: there is no format, or no call
	Promises   Promises        // what of the answer is checked when it is complete
	Custom     map[string]bool // the names of the custom tools among those that the model is offered; nil: there are none
	Thinks     bool            // the model may think before it answers
	Stops      []string

	Setting Setting // of how much the model thinks; the engine of a model whose template is known refuses one that isn't offered

	Edit   jsonbody.Edit
	format *schema.Promise // of the answer's text; nil if it has none

	Limit int // maximum number of tokens of each choice besides that of the client's token; 0 if the request sets it
}

// OffersTools reports whether the model is offered tools by a chat's request.
func (c *Chat) OffersTools(body *jsonbody.Body) bool {
	return gjson.GetBytes(c.Edit.Value(body, "tools"), "0").Exists() && gjson.ParseBytes(c.Edit.Value(body, "tool_choice")).Str != "none"
}

// Blame returns an engine's error about its request as one about the client's, which may have no such field: what makes an answer a
// call is a format for the engine.
func (c *Chat) Blame(body *jsonbody.Body, e *translate.Error) *translate.Error {
	isGiven := func(name string) bool { return jsonbody.IsGiven(c.Edit.Value(body, name)) }
	if e.Kind != translate.KindInvalid || e.Param != "response_format" || isGiven(e.Param) && !c.Forced {
		return e
	}
	about := *e
	switch {
	case e.Code == translate.FormatNotMet:
		return translate.Unparsed()
	case c.OffersTools(body):
		about.Param = "tools"
	case isGiven("grammar"):
		about.Param = "grammar"
	default:
		return &translate.Error{Kind: translate.KindInternal, Message: e.Message}
	}
	return &about
}

// Completion is a request for text completions, without the fields that only the engine needs.
type Completion struct {
	Prompts   []json.RawMessage // each a string, or an array of token ids
	N         int               // number of choices for each prompt
	BestOf    int               // number of candidates for each prompt; the N likeliest become choices
	Echo      bool              // choices begin with their prompt
	Gap       *Gap              // after the prompt, which is to be filled; nil: the prompt is continued
	Logprobs  int               // number of likeliest tokens listed for each token; negative for no log probabilities
	MaxTokens int               // of each choice; negative for no limit
	Stop      []string
	Seed      int // that an engine has, or RandomSeed

	Edit jsonbody.Edit // changes of the sampling fields
}

// Gap is what a text completion fills: what is between its prompt and the suffix.
type Gap struct {
	Suffix string
	Begun  string          // the text that the gap begins with
	Files  json.RawMessage // texts of other files, as llama-server's input_extra; nil: there are none
}

// maxFiles is the maximum number of texts of other files.
const maxFiles = 1024

// ParseFiles parses input_extra, an array of {"filename","text"}.
func ParseFiles(r *jsonbody.Reader) json.RawMessage {
	v := gjson.ParseBytes(r.Get("input_extra"))
	if v.Type == gjson.Null {
		return nil
	}
	files := jsonbody.AtMost(maxFiles, v)
	if !v.IsArray() {
		r.Refuse(jsonbody.WrongType("input_extra", "an array", v))
	} else if len(files) > maxFiles {
		r.Refuse(translate.BadValue("input_extra", "must hold at most %d texts.", maxFiles))
	}
	made := []byte{'['}
	for _, f := range files {
		name, text := f.Get("filename"), f.Get("text")
		if text.Type != gjson.String || name.Type != gjson.String && name.Type != gjson.Null {
			r.Refuse(translate.BadValue("input_extra", `must hold objects with a "text", and perhaps a "filename", both strings.`))
		}
		made = jsonbody.AppendString(append(jsonbody.AppendComma(made), `{"text":`...), text.Str)
		if name.Str != "" {
			made = jsonbody.AppendString(append(made, `,"filename":`...), name.Str)
		}
		made = append(made, '}')
	}
	return append(made, ']')
}

// IsTokens reports whether a prompt is an array of token ids.
func IsTokens(text json.RawMessage) bool { return text[0] == '[' }

// Refine returns an engine's error about a completion with the field of the request that is at fault.
func (c *Completion) Refine(err *translate.Error) *translate.Error { return refineInput(err, "prompt") }

// NoInfill is the error of a completion with a suffix by a model that can't fill in a gap.
func NoInfill() *translate.Error {
	return translate.Invalid("unsupported_value", "suffix",
		`The model can't fill a gap: leave out "suffix", or choose a model that was trained to fill in the middle.`)
}

// Limits are the names of the token limit, in order of precedence.
var Limits = []string{"n_predict", "max_completion_tokens", "max_tokens"}

// TokenLimit reads the maximum number of tokens of each choice. It is negative if there is none.
func TokenLimit(r *jsonbody.Reader) int {
	for _, name := range Limits {
		if n, given := r.Int(name); given {
			return min(max(-1, n), math.MaxInt32)
		}
	}
	return -1
}

// TokenLimit returns the maximum number of tokens of each choice that an engine is asked for. It is negative if there is none.
func (c *Chat) TokenLimit(b *jsonbody.Body) int {
	for _, name := range Limits {
		if v := gjson.ParseBytes(c.Edit.Value(b, name)); v.Type == gjson.Number {
			return max(-1, int(v.Num))
		}
	}
	return -1
}

// LimitTokens sets the maximum number of tokens of each choice, in place of the request's.
func (c *Chat) LimitTokens(most int) {
	if c.Limit > 0 {
		most = min(most, c.Limit)
	}
	for _, name := range Limits {
		c.Edit.Remove(name)
	}
	c.Edit.Set(Limits[len(Limits)-1], strconv.Itoa(most)) // the name that every engine knows
}

// LimitTokens sets the maximum number of tokens of each choice, in place of the request's.
func (c *Completion) LimitTokens(most int) { c.MaxTokens = most }

// PromptBytes returns the minimum size of a chat's prompt in bytes: the texts of users and tools, without surrounding space.
// Templates may leave out the rest, such as earlier reasoning.
func PromptBytes(b *jsonbody.Body) (sum int) {
	for i := range b.Messages {
		message := gjson.ParseBytes(b.Message(i))
		if role := message.Get("role").Str; role != "user" && role != "tool" {
			continue
		}
		switch content := message.Get("content"); {
		case content.Type == gjson.String:
			sum += len(strings.TrimSpace(content.Str))
		case content.IsArray():
			content.ForEach(func(_, part gjson.Result) bool {
				sum += len(strings.TrimSpace(part.Get("text").Str))
				return true
			})
		}
	}
	return sum
}

// PromptBytes returns the size of the longest prompt in bytes, not counting prompts of token ids.
func (c *Completion) PromptBytes() (most int) {
	for _, prompt := range c.Prompts {
		most = max(most, len(gjson.ParseBytes(prompt).Str))
	}
	return most
}
