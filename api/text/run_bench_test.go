package text

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// chunkReader gives one chunk of an engine's stream for each read.
type chunkReader struct {
	chunk, end string
	left       int
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if r.left--; r.left > 0 {
		return copy(p, r.chunk), nil
	}
	if r.left == 0 {
		return copy(p, r.end), nil
	}
	return 0, io.EOF
}

// passed is a reply that is passed on.
type passed struct{ rewriter wire.Rewriter }

func (p passed) Begin(context.Context, *Response, *wire.Recorder) (wire.Rewriter, error) {
	return p.rewriter, nil
}
func (p passed) IsSeen(sent bool) bool { return sent }

type discardWriter struct{ header http.Header }

func (d *discardWriter) Header() http.Header         { return d.header }
func (d *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (d *discardWriter) WriteHeader(int)             {}
func (d *discardWriter) Flush()                      {}

// BenchmarkChatStream measures what a chunk of an OpenAI-style chat stream costs on its way from the engine to the client.
func BenchmarkChatStream(b *testing.B) {
	const head = `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":" word"}}],"created":1,"id":"x","model":"m","object":"chat.completion.chunk"}` + "\n\n"
	const end = `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"x","model":"m","object":"chat.completion.chunk"}` + "\n\ndata: [DONE]\n\n"
	c := endpoint.NewCall(endpoint.NewSite(endpoint.Config{}), plainDialect, &discardWriter{http.Header{}}, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
	r := NewRun(&Request{Call: c, Streams: true, Engine: llamaserver.Wire{}})
	defer r.Close()
	b.ReportAllocs()
	b.ResetTimer()
	chunks := openai.NewChatChunks(openai.ChunkOptions{Tail: openai.NewChatTail(1, false, nil)})
	chat := &request.Chat{N: 1}
	rewriter := llamaserver.Wire{}.Rewriter(chat, chunks)
	t, err := r.newRelay(Part{Reply: passed{rewriter}, Task: &ChatTask{new(jsonbody.Body), chat, 0}})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.read(c.Request.Context(), &Response{Reader: &chunkReader{head, end, b.N + 1}, request: r.Request}, t); err != nil {
		b.Fatal(err)
	}
}
