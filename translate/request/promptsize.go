package request

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

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
