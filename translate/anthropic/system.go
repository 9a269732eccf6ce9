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
func parseSystem(system gjson.Result) ([]string, *translate.Error) {
	switch {
	case !system.Exists(), system.Type == gjson.Null:
		return nil, nil
	case system.Type == gjson.String:
		return withoutHeader([]string{inside(system)}), nil
	case !system.IsArray():
		return nil, wrongPlace("system", "a string or an array", system)
	}
	texts, err := textBlocks("system", system)
	return withoutHeader(texts), err
}

// textBlocks reads blocks that must be texts.
func textBlocks(path string, blocks gjson.Result) (texts []string, err *translate.Error) {
	all := jsonbody.AtMost(request.MaxParts, blocks)
	if len(all) > request.MaxParts {
		return nil, tooManyBlocks(path)
	}
	for i, block := range all {
		at := path + "." + strconv.Itoa(i)
		text := block.Get("text")
		switch kind := block.Get("type"); {
		case !block.IsObject():
			return nil, wrongPlace(at, "an object", block)
		case kind.Str != "text":
			return nil, badPlace(at+".type", `must be "text".`)
		case text.Type != gjson.String:
			return nil, wrongPlace(at+".text", "a string", text)
		}
		texts = append(texts, inside(text))
	}
	return texts, nil
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
func inside(v gjson.Result) string { return v.Raw[1 : len(v.Raw)-1] }
