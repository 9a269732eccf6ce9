package llamaserver

import (
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Where llama-server generates.
const (
	chatPath   = "/v1/chat/completions"
	textPath   = "/completion"
	infillPath = "/infill"
)

// Wire is the wire of llama.cpp's llama-server, as measured on version 0.7.0.
type Wire struct{}

// Chat sends the fields of chatFields alone. It asks for a stream in any case: only so does the engine notice at once that
// nobody listens any more, and tell how far the prompt is. What a client wants in one piece is gathered from it.
func (Wire) Chat(body *jsonbody.Body, chat *request.Chat, choice int) wire.Upstream {
	e := chat.Edit.Only(chatFields)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("stream_options", `{"include_usage":true}`)
	if chat.HasSeed && chat.Seed >= 0 && choice > 0 { // the choices of one seed differ, and are always the same
		e.Set("seed", strconv.Itoa((chat.Seed+choice)%(1<<32-1)))
	}
	if chat.OnlyChosen { // asked for no other tokens, it lists twenty, or gives no log probabilities at all
		e.Set("top_logprobs", "1")
	}
	if chat.Thinks || chat.Forced || len(chat.Stops) > 0 { // of how many tokens a thought is, or an answer that we end, nothing else tells
		e.Set("timings_per_token", "true")
	}
	return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}
}

// Decoder reads the stream that Chat asks for.
func (Wire) Decoder() translate.Decoder { return &decoder{} }

// Rewriter passes the stream that Chat asks for.
func (Wire) Rewriter(chat *request.Chat, chunks wire.Chunks) wire.Rewriter {
	return &rewriter{ask: chat, chunks: chunks}
}
