package translate

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
)

// LlamaServer is the wire of llama.cpp's llama-server, as measured on version 0.7.0.
type LlamaServer struct{}

// Chat asks for a stream in any case: only so does the engine notice at once that nobody listens any more, and tell how
// far the prompt is. What a client wants in one piece is gathered from it.
func (LlamaServer) Chat(body *Body, caps Caps) ([]byte, *Error) {
	if err := checkMessages(body, caps); err != nil {
		return nil, err
	}
	if n, given, err := body.Int("n"); err != nil {
		return nil, err
	} else if given && n != 1 {
		return nil, &Error{Kind: KindNotImplemented, Param: "n", Message: `"n" other than 1 is not implemented: send the request several times.`}
	}
	var e Edit
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("stream_options", `{"include_usage":true}`)
	e.Remove("ttl") // ours, not the engine's
	return e.Apply(body), nil
}

func checkMessages(body *Body, caps Caps) *Error {
	messages := body.Value("messages")
	if messages == nil {
		return Missing("messages")
	}
	if messages[0] != '[' {
		return wrongType("messages", "an array", gjson.ParseBytes(messages))
	}
	if bytes.TrimLeft(messages[1:], " \t\r\n")[0] == ']' {
		return Invalid("invalid_value", "messages", `"messages" must hold at least one message.`)
	}
	if !caps.Vision && hasImage(messages) {
		return Invalid("unsupported_content", "messages", "The model does not take images: choose a model with vision.")
	}
	return nil
}

// hasImage looks for an image part. The search for the bare word comes first, since it is nearly free and nearly always
// enough.
func hasImage(messages []byte) bool {
	if !bytes.Contains(messages, []byte("image_url")) {
		return false
	}
	found := false
	gjson.ParseBytes(messages).ForEach(func(_, message gjson.Result) bool {
		if content := message.Get("content"); content.IsArray() {
			content.ForEach(func(_, part gjson.Result) bool {
				found = part.Get("type").Str == "image_url"
				return !found
			})
		}
		return !found
	})
	return found
}

// Decoder reads the stream that Chat asks for.
func (LlamaServer) Decoder() Decoder { return &llamaDecoder{} }

// Rewriter passes the stream that Chat asks for.
func (LlamaServer) Rewriter(opts RewriteOptions) Rewriter { return &llamaRewriter{opts: opts} }

// Fault reads the engine's error bodies: {"error":{"code":400,"message":"…","type":"…"}}, with n_prompt_tokens and n_ctx
// when the prompt is too long.
func (LlamaServer) Fault(status int, body []byte) *Error {
	return llamaFault(status, gjson.GetBytes(body, "error"))
}

func llamaFault(status int, e gjson.Result) *Error {
	message := e.Get("message").Str
	if code := int(e.Get("code").Num); code >= 400 && code < 600 {
		status = code
	}
	switch {
	case e.Get("type").Str == "exceed_context_size_error":
		tokens, limit := int(e.Get("n_prompt_tokens").Int()), int(e.Get("n_ctx").Int())
		return &Error{
			Kind: KindContextOverflow, Param: "messages", Tokens: tokens, Limit: limit,
			Message: "The prompt has " + itoa(tokens) + " tokens, but the context length is " + itoa(limit) +
				". Shorten the prompt, or load the model with a larger context_length.",
		}
	case strings.HasPrefix(message, "Context size has been exceeded"):
		return &Error{Kind: KindContextOverflow, Message: "The context is full. Shorten the prompt, or load the model with a larger context_length."}
	case status == 400, status == 501, isClientsMistake(message):
		return Invalid("", "", "The engine refused the request: "+tidy(message))
	case status == 503:
		return &Error{Kind: KindUnavailable, Message: "The engine is not ready: " + tidy(message)}
	default: // 401 and 404 too: the fault is ours or the engine's, never the client's
		return &Error{Kind: KindEngineFailed, Message: "The engine answered with status " + itoa(status) + ": " + tidy(message)}
	}
}

// isClientsMistake knows the mistakes of a request that the engine calls its own, with status 500.
func isClientsMistake(message string) bool {
	for _, start := range []string{"Failed to parse tools", "Failed to parse messages", "Unknown reasoning format", "tools param requires"} {
		if strings.HasPrefix(message, start) {
			return true
		}
	}
	return false
}

// libraryPrefix is what a JSON library puts before its messages.
var libraryPrefix = regexp.MustCompile(`\[json\.exception\.[^\]]*\] ?`)

// tidy cuts what says nothing to a client, and what is too long to be an explanation.
func tidy(message string) string {
	message = libraryPrefix.ReplaceAllString(message, "")
	const enough = 500
	if len(message) > enough {
		message = strings.ToValidUTF8(message[:enough], "") + "…"
	}
	if message == "" {
		return "no reason was given."
	}
	return message
}

// brokenOff is the fault of a stream that ended before its end.
func brokenOff() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine stopped in the middle of its answer. The next request starts it anew."}
}

func nonsense() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine's answer can't be read. Its log says more."}
}
