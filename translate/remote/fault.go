package remote

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Fault parses an error response: {"error":{"message":"…","code":…}}, {"error":"…"}, {"message":"…"} or {"detail":…}. A client is
// told what is its own fault, and otherwise which remote has failed.
func (w *base) Fault(status int, body []byte) *translate.Error {
	said := gjson.ParseBytes(body)
	if !gjson.ValidBytes(body) {
		said = gjson.Result{}
	}
	return w.faultOf(status, said)
}

func (w *base) faultOf(status int, said gjson.Result) *translate.Error {
	e := said.Get("error")
	message := cmp.Or(e.Get("message").Str, e.Str, said.Get("message").Str, said.Get("detail").Str, said.Get("detail.0.msg").Str)
	if overflow := w.overflow(e, message); overflow != nil && (status < 500 || overflow.Tokens > 0) {
		return overflow
	}
	remote, reason := "The remote "+w.Remote, tidy(message)
	fault := func(kind translate.Kind, code, says string) *translate.Error {
		return &translate.Error{Kind: kind, Code: code, Message: remote + says}
	}
	if status >= 300 && status < 400 {
		return fault(translate.KindEngineFailed, "", " redirects requests to another address, to which they aren't sent. "+
			"The administrator has to give that address as its URL.")
	}
	if w.Kind == Lmcaddy && e.Get("code").Str == CodeLoop {
		return fault(translate.KindUnavailable, CodeLoop, " leads this request in a circle. "+
			"The administrator has to remove one of the remotes that it would pass.")
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden: // the message may quote the key
		return fault(translate.KindEngineFailed, "remote_key_refused", " refused the key that it was sent (status "+
			strconv.Itoa(status)+"). The administrator has to correct it in the block of the remote.")
	case http.StatusNotFound, http.StatusMethodNotAllowed: // its message may list other models
		return fault(translate.KindUnavailable, "remote_model_missing",
			" doesn't know the model "+w.Name+" any more, or not this kind of request.")
	case http.StatusTooManyRequests:
		return fault(translate.KindQueueFull, "remote_busy", " takes no more requests at the moment: "+reason)
	case http.StatusServiceUnavailable:
		return fault(translate.KindUnavailable, "remote_unavailable", " is not ready: "+reason)
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return fault(translate.KindStalled, "", " has given up on the request: "+reason)
	case http.StatusNotImplemented:
		return translate.Invalid("not_supported", "", remote+" can't do what the request asks for: "+reason)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		code := e.Get("code").Str
		if !word.MatchString(code) {
			code = "invalid_value"
		}
		return translate.Invalid(code, e.Get("param").Str, remote+" refused the request: "+reason)
	case 0:
		return fault(translate.KindEngineFailed, "", " failed: "+reason)
	default:
		return translate.EngineStatus(remote, status, reason)
	}
}

// CodeLoop is the code of the refusal of a request that has passed the same server before.
const CodeLoop = "remote_loop"

func (w *base) nonsense() *translate.Error {
	return &translate.Error{
		Kind:    translate.KindEngineFailed,
		Message: "The answer of the remote " + w.Remote + " can't be read: it is not what servers of its kind send.",
	}
}

var word = regexp.MustCompile(`^[a-z][a-z0-9_]{1,60}$`)

// What servers say of a prompt that is longer than the context: vLLM, SGLang, LM Studio, lmcaddy, and llama-server of an embedding. Of
// them only llama-server has fields with the numbers, for chats. Without the numbers, the error is still one of the context.
var (
	limits = regexp.MustCompile(`(?i)(?:context length (?:is|of)(?: only)?|maximum model length of|context length \(|` +
		`current batch size: )\s*(\d+)`)
	counts = regexp.MustCompile(`(?i)(?:you requested(?: a total of)?|your request has|input \(|prompt has(?: at least)?|prompt \(length|` +
		`passed|first) (\d+)|input \((\d+) tokens|\(length (\d+)`)
)

func (w *base) overflow(e gjson.Result, message string) *translate.Error {
	if e.Get("type").Str == "exceed_context_size_error" {
		return translate.Overflow(jsonbody.Count(e.Get("n_prompt_tokens")), jsonbody.Count(e.Get("n_ctx")))
	}
	found := limits.FindStringSubmatch(message)
	if found == nil && e.Get("code").Str != "context_length_exceeded" {
		return nil
	}
	told := &translate.Error{
		Kind: translate.KindContextOverflow, Param: "messages",
		Message: "The prompt and the answer are longer than the context of the model on the remote " + w.Remote + ": " + tidy(message),
	}
	if found == nil {
		return told
	}
	told.Limit, _ = strconv.Atoi(found[1])
	for i, n := range counts.FindStringSubmatch(message) {
		if tokens, err := strconv.Atoi(n); i > 0 && err == nil {
			told.Tokens = tokens
		}
	}
	if told.Tokens > told.Limit {
		return translate.Overflow(told.Tokens, told.Limit)
	}
	told.Tokens = 0
	return told
}

// tidy shortens a message, and removes addresses of the remote's network.
func tidy(message string) string {
	return wire.ShortReason(addresses.ReplaceAllString(strings.ToValidUTF8(message, ""), "…"))
}

// addresses matches URLs, and what looks like a key.
var addresses = regexp.MustCompile(`https?://\S+|\bsk-[\w*-]{6,}`)
