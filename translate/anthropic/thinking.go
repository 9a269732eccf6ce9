package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Thinking is how an answer shows the model's thinking.
type Thinking uint8

// A client that didn't ask for thinking sees none, even if the model thinks: such clients take the first block for the answer.
const (
	ThinkingHidden  Thinking = iota
	ThinkingShown            // all of it
	ThinkingOmitted          // a block without text, whose signature has the text for later requests
)

// parseThinking converts the setting to the fields of the model's template, and reports whether the model will think. It can't
// if the client has begun the answer.
func (m *Messages) parseThinking(body *jsonbody.Body, caps request.Caps, isPrefilled bool) (thinks bool, _ *translate.Error) {
	given := body.Get("thinking")
	effort, err := parseEffort(body)
	if err != nil {
		return false, err
	}
	if given.Exists() && given.Type != gjson.Null && !given.IsObject() {
		return false, wrongPlace("thinking", "an object", jsonOf(given))
	}
	budget := 0
	switch kind := given.Get("type"); kind.Str {
	case "enabled":
		if budget, err = parseBudget(body, given.Get("budget_tokens")); err != nil {
			return false, err
		}
		thinks = true
	case "adaptive", "between_tools":
		thinks = true
	case "disabled":
	default:
		if given.IsObject() {
			return false, badPlace("thinking.type", `must be "enabled", "disabled", "adaptive" or "between_tools".`)
		}
	}
	if thinks = thinks && !isPrefilled; !thinks {
		caps.SetSilent(&m.edit)
		return false, nil
	}
	switch display := given.Get("display"); {
	case display.Str == "omitted":
		m.Thinking = ThinkingOmitted
	case !display.Exists(), display.Type == gjson.Null, display.Str == "summarized":
		m.Thinking = ThinkingShown
	default:
		return false, badPlace("thinking.display", `must be "summarized" or "omitted".`)
	}
	if budget > 0 && caps.Thinks() {
		m.edit.Set("thinking_budget_tokens", strconv.Itoa(budget))
	}
	caps.SetThinking(&m.edit, effort)
	return true, nil
}

func parseBudget(body *jsonbody.Body, budget gjson.Result) (int, *translate.Error) {
	const path = "thinking.budget_tokens"
	if budget.Type != gjson.Number || budget.Num != math.Trunc(budget.Num) {
		return 0, wrongPlace(path, "a whole number", jsonOf(budget))
	}
	fields := body.Fields()
	switch limit, given := fields.Int("max_tokens"); {
	case fields.Err != nil:
		return 0, fields.Err
	case budget.Num < 1, given && budget.Num >= float64(limit), budget.Num > math.MaxInt32:
		return 0, badPlace(path, "must be at least 1, and less than max_tokens.")
	default:
		return int(budget.Num), nil
	}
}

func parseEffort(body *jsonbody.Body) (string, *translate.Error) {
	config := body.Get("output_config")
	if config.Exists() && config.Type != gjson.Null && !config.IsObject() {
		return "", wrongPlace("output_config", "an object", jsonOf(config))
	}
	effort := config.Get("effort")
	switch {
	case !effort.Exists(), effort.Type == gjson.Null:
		return "", nil
	case !slices.Contains(request.Efforts[1:], effort.Str):
		return "", badPlace("output_config.effort", "must be one of: %s.", strings.Join(request.Efforts[1:], ", "))
	default:
		return effort.Str, nil
	}
}

// A block of thinking has a signature, which is opaque to clients and sent back by them. Ours proves nothing: clients require
// one that isn't empty. If the thinking isn't shown, the signature has its text, so that a tool loop can continue with it.
const (
	signatureShown   = "lmt1" // followed by a digest
	signatureOmitted = "lmo1" // followed by the text
)

func (t Thinking) signature(thought []byte) string {
	if t == ThinkingOmitted {
		return signatureOmitted + base64.StdEncoding.EncodeToString(thought)
	}
	digest := sha256.Sum256(thought)
	return signatureShown + base64.StdEncoding.EncodeToString(digest[:])
}

func signedThought(signature string) string {
	encoded, isOmitted := strings.CutPrefix(signature, signatureOmitted)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if !isOmitted || err != nil {
		return ""
	}
	return string(text)
}
