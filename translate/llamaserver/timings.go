package llamaserver

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// timings are an engine's measurements of an answer, as the member "timings" of a chunk has them.
type timings struct {
	told                      translate.Timings
	cached, prompt, predicted int  // tokens
	isCounted                 bool // predicted is known
}

// parseTimings parses the member, which was scanned. What isn't a number counts as 0.
func parseTimings(value []byte) timings {
	var promptMillis, predictedMillis, perSecond, drafted, accepted, cached, prompt, predicted []byte
	jsonbody.ReadFields(value, []jsonbody.Field{
		{Name: "prompt_ms", Value: &promptMillis}, {Name: "predicted_ms", Value: &predictedMillis}, {Name: "predicted_per_second", Value: &perSecond},
		{Name: "draft_n", Value: &drafted}, {Name: "draft_n_accepted", Value: &accepted},
		{Name: "cache_n", Value: &cached}, {Name: "prompt_n", Value: &prompt}, {Name: "predicted_n", Value: &predicted},
	})
	return timings{
		told: translate.Timings{
			PromptMillis: measured(promptMillis), PredictedMillis: measured(predictedMillis), PredictedPerSecond: measured(perSecond),
			DraftTokens: counted(drafted), DraftAccepted: counted(accepted),
		},
		cached: counted(cached), prompt: counted(prompt), predicted: counted(predicted), isCounted: isNumber(predicted),
	}
}

func (t *timings) usage() translate.Usage {
	return translate.Usage{Prompt: t.cached + t.prompt, Cached: t.cached, Completion: t.predicted}
}

// isNumber reports whether a JSON value, which was scanned, is a number.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// measured returns a number that isn't negative. It is 0 for any other value, and for one that JSON can't represent.
func measured(value []byte) float64 {
	if !isNumber(value) {
		return 0
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func counted(value []byte) int { return int(min(measured(value), math.MaxInt32)) }

// thoughtTokens counts the tokens of the model's thinking. Each piece comes with the number of tokens generated so far; a piece
// may have several if they form one character. The number of tokens of the tag that opens the thinking is unknown, so the first
// piece counts at most as many tokens as it has bytes, and one if it is ASCII. Without that number, each piece counts as one
// token.
type thoughtTokens struct {
	count     int
	generated int  // tokens reported last
	isOpen    bool // the last piece was thinking
}

func (t *thoughtTokens) note(c *chunk) {
	var told []byte
	jsonbody.ReadFields(c.timings, []jsonbody.Field{{Name: "predicted_n", Value: &told}})
	before, isTold := t.generated, isNumber(told)
	if isTold {
		t.generated = max(before, counted(told))
	}
	switch size := len(c.reasoning) - len(`""`); {
	case size > 0 && c.reasoning[0] == '"':
		switch {
		case !isTold:
			t.count++
		case t.isOpen:
			t.count += t.generated - before
		case isPlain(c.reasoning):
			t.count++
		default:
			t.count += min(t.generated-before, size)
		}
		t.isOpen = true
	case c.calls != nil || len(c.content) > len(`""`):
		t.isOpen = false
	}
}

// isPlain reports whether a JSON string has only characters of ASCII.
func isPlain(json []byte) bool {
	return !bytes.Contains(json, []byte(`\u`)) && bytes.IndexFunc(json, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
