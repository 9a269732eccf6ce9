// Package chattemplate guesses from the text of a chat template what a model can do.
package chattemplate

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/model"
)

var (
	jinjaComment = regexp.MustCompile(`(?s)\{#.*?#\}`)
	thinkingTag  = regexp.MustCompile(`(?i)<think>|\[THINK\]|<seed:think>|<\|START_THINKING\|>|` +
		`<\|channel\|?>\s*(analysis|thought)|<thought>`)
)

// Reasoning guesses the options from the words of a chat template: a hint, until an engine has rendered it.
func Reasoning(template string) model.Reasoning {
	template = jinjaComment.ReplaceAllString(template, "")
	hasSwitch := strings.Contains(template, "enable_thinking")
	switch {
	case strings.Contains(template, "reasoning_effort") && hasSwitch:
		return model.Reasoning{Options: []string{"off", "low", "medium", "high"}, Default: "medium"}
	case strings.Contains(template, "reasoning_effort"):
		return model.Reasoning{Options: []string{"low", "medium", "high"}, Default: "medium"}
	case hasSwitch:
		return model.Reasoning{Options: []string{"off", "on"}, Default: "on"} // the default of engines that support the switch
	case thinkingTag.MatchString(template):
		return model.Reasoning{Options: []string{"on"}, Default: "on"}
	default:
		return model.Reasoning{}
	}
}

// TakesTools reports whether a template is that of a model trained to call tools.
func TakesTools(template string) bool { return strings.Contains(template, "tools") }

// Hash returns a hash of chat templates; empty: there are none.
func Hash(templates ...string) string {
	if text := strings.Join(templates, "\x00"); strings.Trim(text, "\x00") != "" {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:12])
	}
	return ""
}
