package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Reasoning is what a model offers for choosing how much it thinks before it answers.
type Reasoning struct {
	// Options are some of the native API's words "off", "low", "medium", "high" and "on", in this order. "on" alone is a
	// model that always thinks; none, one that never does, as far as its file tells.
	Options []string `json:",omitempty"`
	// Default is what an engine does that isn't told; empty where that isn't known.
	Default string `json:",omitempty"`
}

// The words for reasoning, least first.
var reasoningWords = []string{"off", "low", "medium", "high", "on"}

// effortWords are what templates compare an effort with, and the native API's words for it.
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

// reasoningOf reads it from a chat template: a switch that the template asks for (enable_thinking), a measure
// (reasoning_effort), or the tags that thoughts stand in.
func reasoningOf(template string) Reasoning {
	template = jinjaComment.ReplaceAllString(template, "")
	offered := map[string]bool{}
	byDefault := ""
	if strings.Contains(template, "enable_thinking") {
		offered["off"] = true
		byDefault = "on" // engines that know the switch turn it on
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

// effortsOf are the efforts that a template tells apart; the usual ones if it only passes on what it is given.
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

// defaultEffort is what a template takes where it is told nothing, else the middle.
func defaultEffort(template string, offered map[string]bool) string {
	if set := effortSet.FindStringSubmatch(template); set != nil && offered[effortWords[set[1]]] {
		return effortWords[set[1]]
	}
	if offered["medium"] {
		return "medium"
	}
	return ""
}

// takesTools tells whether a template is one of a model that was trained to call tools.
func takesTools(template string) bool { return strings.Contains(template, "tools") }
