package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Reasoning describes the choice of reasoning effort that a model offers.
type Reasoning struct {
	// Options are some of the native API's words "off", "low", "medium", "high" and "on", in this order. "on" alone means that the
	// model always thinks; no options mean that it never does, as far as its file says.
	Options []string `json:",omitempty"`
	// Default is the effort that an engine uses by default; empty if unknown.
	Default string `json:",omitempty"`
}

// reasoningWords are the words for reasoning, in ascending order.
var reasoningWords = []string{"off", "low", "medium", "high", "on"}

// effortWords maps the words for efforts in chat templates to those of the native API.
var effortWords = map[string]string{
	"none": "off", "off": "off", "no_think": "off", "low": "low", "minimal": "low", "medium": "medium", "high": "high",
	"xhigh": "high", "max": "high",
}

var (
	jinjaTag     = regexp.MustCompile(`(?s)\{[{%].*?[%}]\}`)
	jinjaComment = regexp.MustCompile(`(?s)\{#.*?#\}`)
	jinjaString  = regexp.MustCompile(`'[^'\n]*'|"[^"\n]*"`)
	thinkingTag  = regexp.MustCompile(`(?i)<think>|\[THINK\]|<seed:think>|<\|START_THINKING\|>|<\|channel\|?>\s*(analysis|thought)|<thought>`)
	effortSet    = regexp.MustCompile(`\bset\s+\w*reasoning_effort\s*=[^=]*?['"](\w+)['"]`)
)

// reasoningOf guesses the options from the words of a chat template, for a model whose engine hasn't rendered it yet or can't show what it
// renders: from a switch (enable_thinking), an effort (reasoning_effort), or the tags that enclose thoughts.
func reasoningOf(template string) Reasoning {
	template = jinjaComment.ReplaceAllString(template, "")
	offered := map[string]bool{}
	byDefault := ""
	if strings.Contains(template, "enable_thinking") {
		offered["off"] = true
		byDefault = "on" // the default of engines that support the switch
	}
	if efforts := effortsOf(template); len(efforts) > 0 {
		for _, e := range efforts {
			offered[e] = true
		}
		byDefault = defaultEffort(template, offered)
	} else if offered["off"] || thinkingTag.MatchString(template) {
		offered["on"] = true
		byDefault = "on"
	}
	r := Reasoning{Default: byDefault}
	for _, word := range reasoningWords {
		if offered[word] {
			r.Options = append(r.Options, word)
		}
	}
	return r
}

// effortsOf returns the efforts that a template distinguishes, or the usual ones if it only passes the effort on.
func effortsOf(template string) []string {
	var efforts []string
	asked := false
	for _, tag := range jinjaTag.FindAllString(template, -1) {
		if !strings.Contains(tag, "reasoning_effort") {
			continue
		}
		asked = true
		for _, quoted := range jinjaString.FindAllString(tag, -1) {
			word, ok := effortWords[quoted[1:len(quoted)-1]]
			if ok && !slices.Contains(efforts, word) {
				efforts = append(efforts, word)
			}
		}
	}
	if asked && len(efforts) < 2 {
		return []string{"low", "medium", "high"}
	}
	return efforts
}

// defaultEffort returns the default of a template, or else "medium" if that is offered.
func defaultEffort(template string, offered map[string]bool) string {
	if set := effortSet.FindStringSubmatch(template); set != nil && offered[effortWords[set[1]]] {
		return effortWords[set[1]]
	}
	if offered["medium"] {
		return "medium"
	}
	return ""
}

// takesTools reports whether a template is that of a model trained to call tools.
func takesTools(template string) bool { return strings.Contains(template, "tools") }

// templateHash returns a hash of chat templates; empty: there are none.
func templateHash(templates ...string) string {
	if text := strings.Join(templates, "\x00"); strings.Trim(text, "\x00") != "" {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:12])
	}
	return ""
}
