package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var (
	jinjaComment = regexp.MustCompile(`(?s)\{#.*?#\}`)
	thinkingTag  = regexp.MustCompile(`(?i)<think>|\[THINK\]|<seed:think>|<\|START_THINKING\|>|<\|channel\|?>\s*(analysis|thought)|<thought>`)
)

// reasoningOf guesses the options from the words of a chat template: a hint, until an engine has rendered it.
func reasoningOf(template string) Reasoning {
	template = jinjaComment.ReplaceAllString(template, "")
	hasSwitch := strings.Contains(template, "enable_thinking")
	switch {
	case strings.Contains(template, "reasoning_effort") && hasSwitch:
		return Reasoning{Options: []string{"off", "low", "medium", "high"}, Default: "medium"}
	case strings.Contains(template, "reasoning_effort"):
		return Reasoning{Options: []string{"low", "medium", "high"}, Default: "medium"}
	case hasSwitch:
		return Reasoning{Options: []string{"off", "on"}, Default: "on"} // the default of engines that support the switch
	case thinkingTag.MatchString(template):
		return Reasoning{Options: []string{"on"}, Default: "on"}
	default:
		return Reasoning{}
	}
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
