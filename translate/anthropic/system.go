package anthropic

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// headerLine matches a line by which a client identifies itself to Anthropic, such as "x-anthropic-billing-header:
// cc_version=…". It is the first line and differs in each request, so no prompt would share a prefix with the one before and
// the engine couldn't reuse its cache.
var headerLine = regexp.MustCompile(`^x-anthropic-[a-z0-9-]+:[^\n]*\n*`)

// parseSystem parses the system prompt: a text, or blocks of text. It returns the contents of JSON strings.
func parseSystem(system []byte) ([]string, *translate.Error) {
	switch {
	case !jsonbody.IsGiven(system):
		return nil, nil
	case isOfType(system, jsonbody.AString):
		return withoutHeader([]string{string(inside(system))}), nil
	case !isOfType(system, jsonbody.AnArray):
		return nil, wrongPlace("system", "a string or an array", system)
	}
	texts, err := textBlocks("system", system)
	if err != nil {
		return nil, err
	}
	return withoutHeader(texts), nil
}

// textBlocks reads blocks that must be texts.
func textBlocks(path string, blocks []byte) (texts []string, err *translate.Error) {
	err = eachBlock(path, blocks, func(at string, b *inputBlock) *translate.Error {
		switch {
		case jsonbody.Unquote(b.kind) != "text":
			return badPlace(at+".type", `must be "text".`)
		case !isOfType(b.text, jsonbody.AString):
			return wrongPlace(at+".text", "a string", b.text)
		}
		texts = append(texts, string(inside(b.text)))
		return nil
	})
	return texts, err
}

func tooManyBlocks(path string) *translate.Error {
	return badPlace(path, "must hold at most "+strconv.Itoa(request.MaxParts)+" blocks.")
}

func withoutHeader(texts []string) []string {
	if len(texts) == 0 || !strings.HasPrefix(texts[0], "x-anthropic-") {
		return texts
	}
	first := gjson.Parse(`"` + texts[0] + `"`).Str
	for line := headerLine.FindString(first); line != ""; line = headerLine.FindString(first) {
		first = first[len(line):]
	}
	if first == "" {
		return texts[1:]
	}
	quoted := string(jsonbody.AppendString(nil, first))
	texts[0] = quoted[1 : len(quoted)-1]
	return texts
}

// inside returns the contents of a JSON string: its escaped text without the quotes.
func inside(v []byte) []byte { return v[1 : len(v)-1] }
