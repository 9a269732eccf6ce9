package request

import (
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Efforts are the values of reasoning_effort in increasing order. "none" turns thinking off.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// commonEfforts are the efforts offered by a model of which nothing is known.
var commonEfforts = []string{"none", "low", "medium", "high"}

// Efforts returns the values of reasoning_effort that have an effect on the model. One with a switch maps them to on and off.
func (c *Caps) Efforts() []string {
	if c.Reasoning == nil || slices.Equal(c.Reasoning, []string{"off", "on"}) {
		return commonEfforts
	}
	var offered []string
	for _, word := range c.Reasoning {
		switch word {
		case "off":
			offered = append(offered, "none")
		case "low", "medium", "high":
			offered = append(offered, word)
		}
	}
	return offered
}

// NearestEffort returns the offered effort that is nearest to a rank in [Efforts], or the lesser of two. It doesn't turn
// thinking on or off if there is another choice.
func NearestEffort(rank int, offered []string) string {
	best, distance := offered[0], len(Efforts)*3
	for _, o := range offered {
		at := slices.Index(Efforts, o)
		d := max(at-rank, rank-at)
		if (at == 0) != (rank == 0) {
			d += len(Efforts)
		}
		if d < distance {
			best, distance = o, d
		}
	}
	return best
}

// ReasoningWords are the native API's words for how much a model thinks, in ascending order.
var ReasoningWords = []string{"off", "low", "medium", "high", "on"}

// Reasoning returns the words that the template knows, in ascending order. The result is never nil.
func (t *Template) Reasoning() []string {
	words := []string{}
	for _, word := range ReasoningWords {
		if _, ok := t.Thinking[word]; ok {
			words = append(words, word)
		}
	}
	return words
}

// substitutes are what comes next for each word that a model doesn't offer.
var substitutes = map[string][]string{
	"off":    {"low", "medium", "high", "on"},
	"low":    {"medium", "high", "on", "off"},
	"medium": {"low", "high", "on", "off"},
	"high":   {"medium", "low", "on", "off"},
	"on":     {"medium", "high", "low", "off"},
}

// Nearest returns the word that is nearest to a wanted one among those that the template knows; empty: it knows none. "on" means what
// the model does by itself, if that is to think.
func (t *Template) Nearest(word string) string {
	if _, ok := t.Thinking[word]; ok {
		return word
	}
	candidates := substitutes[word]
	if word == "on" && t.Default != "off" {
		candidates = append([]string{t.Default}, candidates...)
	}
	for _, other := range candidates {
		if _, ok := t.Thinking[other]; ok {
			return other
		}
	}
	return ""
}

// WordOfEffort returns the word of the native API for one of [Efforts]; empty: it is none of them.
func WordOfEffort(effort string) string { return wordOfEffort[effort] }

var wordOfEffort = map[string]string{
	"none": "off", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}

// Setting is a client's choice of how much a model thinks, which the model has to offer. The zero value is no choice.
type Setting struct {
	Model string // its name, for the client
	Word  string // one of ReasoningWords, if the client is right
}

// Check returns the error of a choice that isn't offered.
func (s Setting) Check(offered []string) *translate.Error {
	const name = "reasoning"
	switch {
	case s == Setting{} || slices.Contains(offered, s.Word):
		return nil
	case len(offered) == 0:
		return translate.Invalid("invalid_value", name,
			"Model '"+s.Model+`' does not expose reasoning configuration: leave "reasoning" out.`)
	default:
		return translate.Invalid("invalid_value", name, "Reasoning setting '"+s.Word+"' is not supported by model '"+s.Model+
			"'. Supported settings: '"+strings.Join(offered, "', '")+"'.")
	}
}

// Values of chat_template_kwargs that turn thinking on and off.
const (
	ThinkingOn  = `{"enable_thinking":true}`
	ThinkingOff = `{"enable_thinking":false}`
)

// SetSilent turns thinking off in the request of an engine, or to the lowest effort that the model offers. It reports whether it is off.
func (c *Caps) SetSilent(e *jsonbody.Edit) bool {
	if c.CanBeSilent() {
		e.Set("chat_template_kwargs", ThinkingOff)
		e.Set("reasoning_effort", `"none"`)
		return true
	}
	if offered := c.Efforts(); len(offered) > 0 {
		e.Set("reasoning_effort", `"`+NearestEffort(0, offered)+`"`)
	}
	return false
}

// SetThinking turns thinking on in the request of an engine, with the offered effort that is nearest to the wanted one; empty: its own.
func (c *Caps) SetThinking(e *jsonbody.Edit, effort string) {
	if c.CanBeSilent() { // otherwise it always thinks
		e.Set("chat_template_kwargs", ThinkingOn)
	}
	offered := c.Efforts()
	if effort == "" || len(offered) == 0 {
		return
	}
	if nearest := NearestEffort(slices.Index(Efforts, effort), offered); nearest != Efforts[0] {
		e.Set("reasoning_effort", `"`+nearest+`"`)
	}
}
