package llamaserver

import (
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

// parseTimings parses the member in one pass. What isn't a number counts as 0.
func parseTimings(value []byte) (t timings) {
	s := jsonbody.Scanner{Data: value, Lenient: true}
	o := objectScan{s: &s}
	for o.next() {
		switch value := o.value(2); string(o.key) {
		case "prompt_ms":
			t.told.PromptMillis = measured(value)
		case "predicted_ms":
			t.told.PredictedMillis = measured(value)
		case "predicted_per_second":
			t.told.PredictedPerSecond = measured(value)
		case "draft_n":
			t.told.DraftTokens = counted(value)
		case "draft_n_accepted":
			t.told.DraftAccepted = counted(value)
		case "cache_n":
			t.cached = counted(value)
		case "prompt_n":
			t.prompt = counted(value)
		case "predicted_n":
			t.predicted, t.isCounted = counted(value), isNumber(value)
		}
	}
	return t
}

// predictedTokens is the number of generated tokens alone, which every chunk of thinking is asked for.
func predictedTokens(value []byte) (n int, ok bool) {
	told := member(value, "predicted_n")
	return counted(told), isNumber(told)
}

// usage is what the timings say of the tokens.
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

// counted returns a number of tokens.
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

// note counts the tokens of a chunk.
func (t *thoughtTokens) note(c *chunk) {
	generated, isTold := 0, false
	if c.timings != nil {
		generated, isTold = predictedTokens(c.timings)
	}
	before := t.generated
	if isTold {
		t.generated = max(before, generated)
	}
	switch size := len(c.reasoning) - len(`""`); {
	case size > 0 && c.reasoning[0] == '"':
		switch {
		case !isTold:
			t.count++
		case t.isOpen:
			t.count += t.generated - before
		case isASCII(c.reasoning):
			t.count++
		default:
			t.count += min(t.generated-before, size)
		}
		t.isOpen = true
	case c.calls != nil || len(c.content) > len(`""`):
		t.isOpen = false
	}
}

func isASCII(json []byte) bool {
	for i, c := range json {
		if c >= utf8.RuneSelf || c == '\\' && i+1 < len(json) && json[i+1] == 'u' {
			return false
		}
	}
	return true
}
