package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Transcription is a request of /v1/audio/transcriptions. A model is asked for it in a chat, in the words of llama-server's own endpoint.
// It tells no times, so there are no segments and no subtitles.
type Transcription struct {
	Chat  *request.Chat
	form  url.Values
	file  *translate.Media
	media request.MediaReader
}

// chatFields are the fields of the form that a chat has, too; true: their values are no texts.
var chatFields = map[string]bool{"model": false, "preset": false, "stream": true, "temperature": true, "max_tokens": true, "ttl": true}

// ReadForm reads the form of a request. It returns the fields of a chat as JSON.
func (t *Transcription) ReadForm(contentType string, body []byte) (made []byte, bad *translate.Error) {
	kind, parameters, _ := mime.ParseMediaType(contentType)
	form, err := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]).ReadForm(2*int64(len(body)) + 1<<20) // all in memory
	if err != nil || kind != "multipart/form-data" || parameters["boundary"] == "" {
		return nil, translate.Invalid("invalid_form", "", `The body must be a whole multipart/form-data form, with "file" and "model".`)
	}
	t.form = form.Value
	switch format := t.form.Get("response_format"); {
	case !slices.Contains([]string{"", "json", "text", "verbose_json"}, format):
		return nil, translate.Refused("unsupported_value", "response_format",
			`must be "json", "text" or "verbose_json", not %s: the engine tells no times.`, translate.QuoteShort(format))
	case t.form.Get("timestamp_granularities")+t.form.Get("timestamp_granularities[]") != "":
		return nil, translate.Refused("unsupported_value", "timestamp_granularities", "asks for what no engine tells: leave it out.")
	case len(form.File["file"]) != 1:
		return nil, translate.Refused("missing_required_parameter", "file", "is required, once, with the name of a file.")
	}
	file, _ := form.File["file"][0].Open()
	content, _ := io.ReadAll(file)
	if t.file, bad = t.media.Hear("file", content); bad != nil {
		return nil, bad
	}
	made = []byte(`{"messages":[{"role":"user","content":""}],"reasoning_effort":"none"`)
	for _, name := range slices.Sorted(maps.Keys(chatFields)) { // of several bad ones the same is always named
		for _, value := range t.form[name] {
			typed := bytes.ToLower([]byte(value))
			if !chatFields[name] || !json.Valid(typed) || typed[0] == '"' {
				typed = jsonbody.AppendString(nil, value)
			}
			if value != "" { // as clients send what isn't set
				made = append(append(append(append(made, `,"`...), name...), `":`...), typed...)
			}
		}
	}
	return append(made, '}'), nil
}

// Parse checks the fields of a chat, for a model of an architecture that takes audio.
func (t *Transcription) Parse(body *jsonbody.Body, architecture string, caps request.Caps) (bad *translate.Error) {
	if t.Chat, bad = ParseChat(body, caps); bad != nil {
		return bad
	}
	system, prompt := "", cmp.Or(t.form.Get("prompt"), "Transcribe audio to text")
	if strings.HasPrefix(architecture, "lfm2") {
		system, prompt = "Perform ASR.", t.form.Get("prompt")
	}
	if language := t.form.Get("language"); language != "" {
		prompt += " (language: " + language + ")"
	}
	messages := request.MessagesOf([]translate.Item{
		translate.SystemItem(system),
		{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: prompt}, {Media: t.file}}},
	})
	t.Chat.Edit.SetLarge("messages", messages.Array())
	return nil
}

// Transcript encodes the events of a transcription's answer.
type Transcript struct {
	Of       *Transcription
	IsStream bool // append events; otherwise gather the text for Body

	text    strings.Builder
	outcome translate.Outcome
}

// Append appends the event of a piece of text, or of the end, if the client streams.
func (t *Transcript) Append(dst []byte, ev translate.Event) []byte {
	t.outcome.Note(ev)
	switch ev := ev.(type) {
	case translate.Text:
		if t.text.WriteString(ev.Text); t.IsStream {
			dst = jsonbody.AppendFrame(dst, append(jsonbody.AppendString([]byte(`{"type":"transcript.text.delta","delta":`), ev.Text), '}'))
		}
	case translate.Finish:
		if t.IsStream {
			dst = jsonbody.AppendFrame(dst, t.whole(`{"type":"transcript.text.done","text":`))
			dst = jsonbody.AppendFrame(dst, jsonbody.DoneMark)
		}
	}
	return dst
}

// whole returns an object that begins with a text, which is all of the answer's.
func (t *Transcript) whole(begin string) []byte {
	used := t.outcome.Usage
	return fmt.Appendf(jsonbody.AppendString([]byte(begin), strings.TrimSpace(t.text.String())),
		`,"usage":{"type":"tokens","input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
		used.Prompt, used.Completion, used.Prompt+used.Completion)
}

// Body returns the answer in one piece, and whether it is plain text.
func (t *Transcript) Body() (body []byte, isText bool) {
	text := strings.TrimSpace(t.text.String())
	switch t.Of.form.Get("response_format") {
	case "text":
		return []byte(text + "\n"), true
	case "verbose_json": // without the segments; the language is the client's own word
		body = jsonbody.AppendString([]byte(`{"task":"transcribe","language":`), t.Of.form.Get("language"))
		body = fmt.Appendf(body, `,"duration":%g,"text":`, t.Of.media.Heard.Seconds())
		return append(jsonbody.AppendString(body, text), '}'), false
	default:
		return t.whole(`{"text":`), false
	}
}
