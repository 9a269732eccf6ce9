package echoengine

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Where the engine listens.
const (
	generatePath = "/generate"
	measurePath  = "/measure"
)

// Wire is the engine's wire format. A request is lines of a key and a value, see [appendLine]; an answer is a stream of lines
// of JSON, see [decoder]. Of what is optional it has embeddings alone, and it
// says what it can't do.
type Wire struct{}

// sent are the fields of a chat that the engine is sent.
var sent = map[string]bool{"messages": true, "tools": true, "n_predict": true, "max_completion_tokens": true, "max_tokens": true}

// Chat sends the messages, the tools and the limit.
func (Wire) Chat(body *jsonbody.Body, chat *request.Chat, _ int) wire.Upstream {
	edit := chat.Edit.Only(sent)
	ask := gjson.ParseBytes(edit.Apply(body))
	var lines []byte
	for _, m := range ask.Get("messages").Array() {
		lines = appendLine(lines, m.Get("role").Str, textOf(m.Get("content")))
	}
	for _, tool := range ask.Get("tools").Array() {
		lines = appendLine(lines, "may call", tool.Get("function.name").Str)
	}
	for _, name := range request.Limits {
		if limit := ask.Get(name); limit.Num > 0 {
			lines = appendLine(lines, "limit", strconv.Itoa(int(limit.Num)))
			break
		}
	}
	if chat.Forced {
		lines = appendLine(lines, "must call", "one")
	}
	return wire.Upstream{Path: generatePath, Body: [][]byte{lines}}
}

// textOf is a message's content: a string, or an array of parts, all of which are texts, since the models have no vision.
func textOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.Str
	}
	var texts []string
	for _, part := range content.Array() {
		texts = append(texts, part.Get("text").Str)
	}
	return strings.Join(texts, "\n")
}

// Drops names the fields that Chat leaves out.
func (Wire) Drops(body *jsonbody.Body, chat *request.Chat) []string {
	edit := chat.Edit.Only(sent)
	return edit.Dropped(body)
}

// Decoder reads the stream that Chat asks for.
func (Wire) Decoder() translate.Decoder { return &decoder{} }

// Quirks implements [wire.Engine].
func (Wire) Quirks() wire.Quirks { return wire.Quirks{} }

// Fault reads an error, which is one line of text.
func (Wire) Fault(status int, body []byte) *translate.Error {
	text := strings.TrimSpace(string(body))
	var tokens, limit int
	if n, _ := fmt.Sscanf(text, tooLong, &tokens, &limit); n == 2 {
		return translate.Overflow(tokens, limit)
	}
	if status == http.StatusTeapot {
		return translate.Invalid("invalid_value", "", "The engine refused the request: "+text)
	}
	return &translate.Error{Kind: translate.KindEngineFailed, Message: "The engine answered with status " + strconv.Itoa(status) + ": " + text}
}

// tooLong is the engine's error about a prompt that doesn't fit.
const tooLong = "%d words are more than %d"

// A value is one line.
var (
	escaper   = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n")
)

// appendLine appends a line of a request.
func appendLine(dst []byte, key, value string) []byte {
	return append(append(append(append(dst, key...), ": "...), escaper.Replace(value)...), '\n')
}

// Interface guards
var (
	_ wire.Engine   = Wire{}
	_ wire.Embedder = Wire{}
)
