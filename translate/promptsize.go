package translate

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// PromptBytes is how many bytes of text a chat's prompt has at least: what users and tools say, without the spaces around it.
// Templates may leave out the rest, such as earlier thinking.
func PromptBytes(b *Body) (sum int) {
	for _, m := range b.messages {
		message := gjson.ParseBytes(b.Raw[m.from:m.to])
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

// PromptBytes is how many bytes the longest of the prompts has; 0 for those that are tokens.
func (c *Completion) PromptBytes() (most int) {
	for _, prompt := range c.Prompts {
		most = max(most, len(gjson.ParseBytes(prompt).Str))
	}
	return most
}

// SurelyTooLong is the error of a prompt that has more tokens than the context holds, however it is cut into them.
func SurelyTooLong(param string, least, limit int) *Error {
	return &Error{
		Kind: KindContextOverflow, Param: param, Tokens: least, Limit: limit,
		Message: "The prompt has at least " + strconv.Itoa(least) + " tokens, but the context length is " + strconv.Itoa(limit) +
			". Shorten the prompt, or load the model with a larger context_length.",
	}
}
