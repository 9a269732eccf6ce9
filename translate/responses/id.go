package responses

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// idPrefix starts the ids of responses. A response's id is the prefix and hexadecimal digits.
const idPrefix = "resp_"

// Prefixes of the ids of items.
const (
	messagePrefix   = "msg"
	reasoningPrefix = "rs"
	functionPrefix  = "fc"
	resultPrefix    = "fco"
	customPrefix    = "ctc"
	outputPrefix    = "ctco" // of the result of a custom tool
	mcpCallPrefix   = "mcp"
	toolListPrefix  = "mcpl"
	summaryPrefix   = "cmp"
	foreignPrefix   = "item"
)

var prefixes = []string{messagePrefix, reasoningPrefix, functionPrefix, resultPrefix, customPrefix, outputPrefix, mcpCallPrefix, toolListPrefix, summaryPrefix, foreignPrefix}

// The number at the end of an item's id has numberDigits hexadecimal digits. Those of the input start at firstInput.
const (
	numberDigits = 6
	firstInput   = 1 << 20
)

// ItemID returns the id of the n-th item of a response: of its output, or from firstInput on of its input. It has the response's id
// in it, so that an item is found without an index.
func ItemID(responseID, prefix string, n int) string {
	return fmt.Sprintf("%s_%s%0*x", prefix, strings.TrimPrefix(responseID, idPrefix), numberDigits, n)
}

// ResponseOf returns the response that an item's id names, and the item's number. ok is false for an id of other origin.
func ResponseOf(itemID string) (responseID string, n int, ok bool) {
	prefix, rest, _ := strings.Cut(itemID, "_")
	at := len(rest) - numberDigits
	if at <= 0 || !slices.Contains(prefixes, prefix) {
		return "", 0, false
	}
	number, err := strconv.ParseUint(rest[at:], 16, 32)
	if err != nil || strings.Trim(rest, "0123456789abcdef") != "" {
		return "", 0, false
	}
	return idPrefix + rest[:at], int(number), true
}

// prefixOf returns the prefix of the id of an item.
func prefixOf(item *translate.Item) string {
	switch {
	case item.Kind == translate.ItemReasoning:
		return reasoningPrefix
	case item.Kind == translate.ItemToolList:
		return toolListPrefix
	case item.Kind == translate.ItemSummary:
		return summaryPrefix
	case item.Kind == translate.ItemForeign:
		return foreignPrefix
	case item.Kind == translate.ItemResult && item.Custom:
		return outputPrefix
	case item.Kind == translate.ItemResult:
		return resultPrefix
	case item.Kind == translate.ItemMessage:
		return messagePrefix
	case item.Custom:
		return customPrefix
	case item.Provider != nil:
		return mcpCallPrefix
	default:
		return functionPrefix
	}
}
