// Package mlxlm implements the wire format of mlx_lm.server, the server for MLX models on Apple machines, as measured on version
// 0.32.
//
// The server checks its requests badly: a value of the wrong type closes the connection, and some values end its generation for
// all clients. So every request is written anew, from values that are checked here.
package mlxlm

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openaistream"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// The endpoints that generate tokens.
const (
	chatPath = "/v1/chat/completions"
	textPath = "/v1/completions"
)

// Wire implements [wire.Engine] and its optional interfaces for mlx_lm.server. The zero value is that of an unknown model.
type Wire struct {
	vocabulary int               // number of tokens that the model knows; 0 if unknown
	template   *request.Template // of the model; nil if it was never rendered
}

// For returns the wire format for a model.
func (Wire) For(caps *request.Caps) wire.Engine { return Wire{caps.Vocabulary, caps.Template} }

// Describe adds the fields that not every engine has.
func (Wire) Describe(caps *request.Caps) { caps.ChatFields, caps.TextFields = ownSampling, ownSampling }

// Chat always asks for a stream. Only by a failed write does the server notice that the client has disconnected.
func (w Wire) Chat(body *jsonbody.Body, chat *request.Chat, choice int) wire.Upstream {
	e := chat.Edit.Only(sentChat)
	wire.SetThinking(&e, body, cmp.Or(w.template, usual))
	request.Arrange(body, &e, w.template)
	from := source{body, &e}
	rest := appendEach([]byte(`,"messages":`), "[]", from.get("messages"), appendMessage)
	arguments := []byte{'{'}
	from.get(argumentsField).ForEach(func(key, value gjson.Result) bool {
		if value.Type != gjson.Null && !slices.Contains(templateOwn, key.Str) {
			arguments = append(jsonbody.AppendString(jsonbody.AppendComma(arguments), key.Str), ':')
			arguments = appendValue(arguments, value)
		}
		return true
	})
	if len(arguments) > 1 {
		rest = append(append(append(rest, `,"chat_template_kwargs":`...), arguments...), '}')
	}
	tools := []byte("}")
	if list := from.get("tools"); list.IsArray() && len(list.Array()) > 0 {
		tools = append(appendValue([]byte(`,"tools":`), list), '}')
	}
	mayBeCut := len(chat.Stops) > 0 || chat.SingleCall && chat.OffersTools(body)
	return wire.Upstream{Path: chatPath, Cut: mayBeCut, Body: [][]byte{
		pieceHead: head, pieceLimit: limitOf(from.limit()), pieceSeed: seedField(chat.Seed(body, choice)),
		pieceSampling: w.appendSampling([]byte(envelope), from), piecePrompt: rest, pieceTools: tools,
	}}
}

// Completion returns the request for one candidate of one prompt.
func (w Wire) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	from := source{body, &c.Edit}
	most := c.MaxTokens
	switch {
	case most == 0: // generates one, which is left out of the answer
		most = 1 + surplus
	case most > 0:
		most += surplus
	}
	return wire.Upstream{Path: textPath, Cut: len(c.Stop) > 0, Body: [][]byte{
		pieceHead: head, pieceLimit: limitOf(most), pieceSeed: seedField(c.SeedOf(candidate)),
		pieceSampling: w.appendSampling([]byte(envelope), from),
		piecePrompt:   jsonbody.AppendString([]byte(`,"prompt":`), jsonbody.Unquote(c.Prompts[prompt])),
		pieceTools:    []byte("}"),
	}}
}

// The pieces of a body. Those that are changed later are pieces of their own.
const (
	pieceHead = iota
	pieceLimit
	pieceSeed // may be empty
	pieceSampling
	piecePrompt
	pieceTools // with the closing brace
)

var head = []byte(`{"max_tokens":`)

// envelope has the fields that all requests have. The name is that of the loaded model; the server would try to load any other.
const envelope = `,"model":"default_model","stream":true,"stream_options":{"include_usage":true}`

// noLimit stands for a request without a limit. Without the field the server has a low limit of its own.
const noLimit = 1<<31 - 1

func limitOf(tokens int) []byte {
	if tokens <= 0 {
		tokens = noLimit
	}
	return strconv.AppendInt(nil, int64(min(tokens, noLimit)), 10)
}

// seedField returns the field for a seed. There is none for a random one.
func seedField(seed int) []byte {
	if seed == request.RandomSeed {
		return nil
	}
	return strconv.AppendInt([]byte(`,"seed":`), int64(seed), 10)
}

// sentChat are the fields of a chat that have an effect.
var sentChat = request.NamesOf(slices.Concat(request.Limits, []string{
	"messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", "reasoning_effort", "seed",
	"temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "logit_bias",
}), ownSampling)

// Drops returns the names of the fields of a chat that have no effect.
func (Wire) Drops(body *jsonbody.Body, chat *request.Chat) []string {
	e := chat.Edit.Only(sentChat)
	return e.Dropped(body)
}

// Decoder decodes the answer to a request of Chat.
func (Wire) Decoder() translate.Decoder { return newDecoder(false) }

// newDecoder decodes the server's streams: comments with the progress of the prompt, chunks, each call in one, and always the usage.
func newDecoder(isText bool) translate.Decoder {
	return openaistream.New(openaistream.Options{
		IsText: isText,
		Fault: func(_ int, answer gjson.Result) *translate.Error {
			return Wire{}.Fault(http.StatusInternalServerError, []byte(answer.Raw))
		},
		Nonsense: translate.Nonsense, Endless: translate.Nonsense, TrimsThoughts: true, AlwaysCounts: true, WholeCalls: true,
		Progress: func(line []byte) (processed, total int, ok bool) { // in a comment, ": keepalive 2048/8191"
			said, isProgress := bytes.CutPrefix(line, []byte(": keepalive "))
			done, all, isPair := bytes.Cut(said, []byte{'/'})
			n, err := strconv.ParseUint(string(done), 10, 31)
			of, bad := strconv.ParseUint(string(all), 10, 31)
			return int(n), int(of), isProgress && isPair && err == nil && bad == nil && n <= of
		},
	})
}

// Quirks implements [wire.Engine]. The default temperature is 0. A prompt can't begin the answer, so a lost one can only be repeated.
func (w Wire) Quirks() wire.Quirks {
	return wire.Quirks{IsGreedy: true, CallsAreText: w.template != nil && w.template.NoTools}
}

// CompletionDecoder decodes the answer to a request of Completion. The server itself would generate beyond a stop string that it
// cuts into other tokens than the model, and leave it out of the text.
func (Wire) CompletionDecoder(c *request.Completion) translate.Decoder {
	d := &surplusDecoder{limit: c.MaxTokens}
	d.Init(newDecoder(true), d.event)
	return wire.EndAtStops(d, c.Stop)
}

const (
	// templateTokens is more than templates add to a prompt: a system prompt of their own, and how tools are called.
	templateTokens = 1024
	// toolsGrow is by how much templates blow up the JSON of tools, which many indent.
	toolsGrow = 4
)

// Bounds returns the maximum number of tokens of the prompt, and the limit of generated tokens. A token has at least a byte, and a
// message of a request has more bytes beside its text than tokens beside it in the prompt.
func (Wire) Bounds(u wire.Upstream) (prompt, completion int) {
	prompt = len(u.Body[piecePrompt]) + toolsGrow*len(u.Body[pieceTools]) + templateTokens
	if n, err := strconv.Atoi(string(u.Body[pieceLimit])); err == nil && n != noLimit {
		completion = n - surplusOf(u)
	}
	return prompt, completion
}

// Counting returns a request for one token, whose answer has the usage. The server keeps the prompt for the next request. A seed
// would keep the request from being worked on beside others.
func (w Wire) Counting(u wire.Upstream) wire.Upstream {
	u = w.Limit(u, 1)
	u.Body[pieceSeed] = nil
	u.Counts = true
	return u
}

// Limit returns u with a limit of generated tokens.
func (Wire) Limit(u wire.Upstream, tokens int) wire.Upstream {
	u.Body = slices.Clone(u.Body)
	u.Body[pieceLimit] = limitOf(max(1, tokens) + surplusOf(u))
	return u
}

// Fault parses an error response, {"error":"…"}. The server has status 404 for whatever goes wrong before it generates: a template
// that refuses the messages, or a tokenizer that can't read them.
func (Wire) Fault(status int, body []byte) *translate.Error {
	said := gjson.GetBytes(body, "error")
	message := said.Str
	if said.IsObject() { // of another server that speaks this protocol
		message = said.Get("message").Str
	}
	if isRefusal := gjson.ValidBytes(body) && message != ""; isRefusal && status == http.StatusNotFound {
		return translate.Invalid("invalid_value", "", "The engine refused the request: "+tidy(message))
	}
	return translate.EngineStatus("The engine", status, tidy(message))
}

// tidy removes the server's paths from a message, and shortens it.
func tidy(message string) string {
	return wire.ShortReason(paths.ReplaceAllString(strings.ToValidUTF8(message, ""), "$1…"))
}

// paths matches absolute paths, on Windows as well.
var paths = regexp.MustCompile(`(^|[\s'"(=:])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'")]+){2,}`)

// surplus is how many tokens more than the client wants a text completion is given. The server keeps the prompt and the answer, and a
// later prompt that is exactly that ends its generation for all clients. It is what a client sends to have an answer continued that
// ended at its limit. With the surplus the server keeps more than any client has seen.
const surplus = 1

func surplusOf(u wire.Upstream) int {
	if u.Path == textPath {
		return surplus
	}
	return 0
}

// surplusDecoder leaves out the token by which an answer is too long if it ends at its limit. So each piece of text waits for the
// next one. A token's text comes in a piece of its own, or together with the rest of the character that the token before it began.
type surplusDecoder struct {
	wire.Filter
	limit int // that the client has set, in tokens; 0 or less: none
	held  string
	usage *translate.Usage // held until the reason for the end is known
}

func (d *surplusDecoder) event(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		d.release()
		d.held = ev.Text
	case translate.Usage:
		d.usage = &ev
	case translate.Finish:
		isOver := d.usage != nil && d.limit > 0 && d.usage.Completion > d.limit // it may be the end mark, which has no text
		if ev.Reason == translate.FinishLength {
			d.held = ""
		}
		if isOver || ev.Reason == translate.FinishLength {
			ev.Reason = translate.FinishLength
			if d.usage != nil {
				d.usage.Completion = max(0, d.usage.Completion-surplus)
			}
		}
		d.end(ev)
	case translate.Fault:
		d.end(ev)
	default:
		d.Emit(ev)
	}
}

func (d *surplusDecoder) end(last translate.Event) {
	if d.release(); d.usage != nil {
		d.Emit(*d.usage)
	}
	d.Emit(last)
}

func (d *surplusDecoder) release() {
	if d.held != "" {
		d.Emit(translate.Text{Text: d.held})
	}
}

// Interface guards
var (
	_ wire.Engine    = Wire{}
	_ wire.Specific  = Wire{}
	_ wire.Describer = Wire{}
	_ wire.Completer = Wire{}
	_ wire.Bounder   = Wire{}
)
