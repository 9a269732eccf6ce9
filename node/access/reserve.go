package access

import (
	"fmt"
	"time"
)

const (
	templateTokens = 256 // the maximum number of tokens that a model's template is expected to add to a prompt
	// BytesPerToken is the usual size of a prompt's token, including the JSON around it.
	BytesPerToken = 4
)

// Need is the maximum that a request may use.
type Need struct {
	Bytes      int // of the prompts; each token has at least one
	Prompts    int
	Choices    int // for all prompts together; 0 if nothing is generated
	Completion int // maximum tokens per choice; negative: limited only by the context
	Spent      int // tokens that earlier rounds of the same request have used
}

// within limits the need to a context of the given length.
func (n Need) within(length int) Need {
	if length <= 0 {
		return n
	}
	n.Bytes = min(n.Bytes+n.Prompts*templateTokens, n.Prompts*length)
	if n.Completion < 0 || n.Completion > length {
		n.Completion = length
	}
	return n
}

func (n Need) tokens() int64 {
	return int64(n.Bytes) + int64(n.Choices)*int64(max(0, n.Completion)) + int64(n.Spent)
}

// fit returns how many of a day's tokens are reserved, and how many a choice may have. If waits is set, it depends on what others need.
func (n Need) fit(left, held int64) (each int, tokens int64, waits bool, _ error) {
	switch {
	case left <= 0:
		return 0, 0, false, dayIsOver()
	case n.tokens() <= left-held:
		return n.Completion, n.tokens(), false, nil
	case held > 0:
		return 0, 0, true, nil
	case int64(n.Choices+n.Spent) > left:
		return 0, 0, false, &LimitError{
			fmt.Sprintf("This token may use %d more tokens today (UTC), fewer than the %d choices that the request asks for. "+
				"Ask for fewer.", left, n.Choices), untilTomorrow(),
		}
	}
	prompt := int64(n.Bytes/BytesPerToken + n.Spent)
	return min(n.Completion, int(max(1, (left-prompt)/int64(max(1, n.Choices))))), left, false, nil
}

func dayIsOver() *LimitError {
	return &LimitError{"This token has reached its limit of tokens per day (UTC).", untilTomorrow()}
}

func untilTomorrow() time.Duration {
	return time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
}
