package translate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// BenchmarkBodyOf compares the dialects: the same content of 1 MiB, from the last byte of the body to the engine's body and the chain of its
// prompt. What a dialect costs beyond OpenAI-style chats is what its messages cost to be written anew.
func BenchmarkBodyOf(b *testing.B) {
	source, err := os.ReadFile("chat_test.go")
	if err != nil {
		b.Fatal(err)
	}
	file := string(source[:4<<10])
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, and that is all. ", 1<<20/62)
	code := strings.Repeat(file, 1<<20/len(file)*9/10) // as much again of backslashes
	quoted := func(text string) string { return string(jsonbody.AppendString(nil, text)) }
	for _, tt := range []struct{ name, of string }{{"text", quoted(text)}, {"code", quoted(code)}} {
		benchmarkBody(b, tt.name+"/OpenAI", `{"model":"m","messages":[{"role":"user","content":`+tt.of+`}]}`, byChat(asChat))
		benchmarkBody(b, tt.name+"/Anthropic", `{"model":"m","max_tokens":8,"messages":[{"role":"user","content":`+tt.of+`}]}`, byChat(asMessages))
		benchmarkBody(b, tt.name+"/Responses", `{"model":"m","store":false,"input":`+tt.of+`}`, byChat(asResponse))
		benchmarkBody(b, tt.name+"/native", `{"model":"m","input":`+tt.of+`}`, byChat(asNative))
		benchmarkBody(b, tt.name+"/Ollama chat", `{"model":"m","messages":[{"role":"user","content":`+tt.of+`}]}`, byChat(asOllama(ollama.ParseChat)))
		benchmarkBody(b, tt.name+"/Ollama generate", `{"model":"m","prompt":`+tt.of+`}`, byChat(asOllama(ollama.ParseGenerate)))
		benchmarkBody(b, tt.name+"/completion", `{"model":"m","prompt":`+tt.of+`}`, byCompletion)
	}
	prose, short := quoted(text[:4<<10]), quoted(file)
	args := quoted(`{"path":"run.go","content":` + short + `}`)
	for name, tt := range map[string]struct {
		turn, body string
		ask        func(*jsonbody.Body) error
	}{
		"OpenAI": {
			`{"role":"user","content":[{"type":"text","text":` + prose + `},{"type":"text","text":` + short + `}]},` +
				`{"role":"assistant","content":"I write.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"write","arguments":` + args + `}}]},` +
				`{"role":"tool","tool_call_id":"call_1","content":` + short + `},{"role":"assistant","content":"Done."},`,
			`{"model":"m","messages":[%s{"role":"user","content":"Go on."}]}`, byChat(asChat),
		},
		"Anthropic": {
			`{"role":"user","content":[{"type":"text","text":` + prose + `},{"type":"text","text":` + short + `}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"I write."},{"type":"tool_use","id":"toolu_1","name":"write","input":{"path":"run.go","content":` + short + `}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":` + short + `}]},{"role":"assistant","content":"Done."},`,
			`{"model":"m","max_tokens":8,"messages":[%s{"role":"user","content":"Go on."}]}`, byChat(asMessages),
		},
		"Responses": {
			`{"type":"message","role":"user","content":[{"type":"input_text","text":` + prose + `},{"type":"input_text","text":` + short + `}]},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I write.","annotations":[]}]},` +
				`{"type":"function_call","call_id":"call_1","name":"write","arguments":` + args + `},` +
				`{"type":"function_call_output","call_id":"call_1","output":` + short + `},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[]}]},`,
			`{"model":"m","store":false,"input":[%s{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}]}`, byChat(asResponse),
		},
		"Ollama": {
			`{"role":"user","content":` + prose + `},{"role":"user","content":` + short + `},` +
				`{"role":"assistant","content":"I write.","tool_calls":[{"function":{"name":"write","arguments":{"path":"run.go","content":` + short + `}}}]},` +
				`{"role":"tool","tool_name":"write","content":` + short + `},{"role":"assistant","content":"Done."},`,
			`{"model":"m","messages":[%s{"role":"user","content":"Go on."}]}`, byChat(asOllama(ollama.ParseChat)),
		},
	} {
		benchmarkBody(b, "agent/"+name, fmt.Sprintf(tt.body, strings.Repeat(tt.turn, 1<<20/len(tt.turn))), tt.ask)
	}
	const texts = 2000
	inputs := strings.TrimSuffix(strings.Repeat(quoted(text[:500])+",", texts), ",")
	benchmarkBody(b, "embeddings/OpenAI", `{"model":"m","input":[`+inputs+`]}`, byEmbedding)
	benchmarkBody(b, "embeddings/Ollama", `{"model":"m","input":[`+inputs+`]}`, byEmbed)
}

func benchmarkBody(b *testing.B, name, body string, ask func(*jsonbody.Body) error) {
	raw := []byte(body)
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		for b.Loop() {
			scanned, bad := jsonbody.Scan(raw)
			if bad != nil {
				b.Fatal(bad)
			}
			if err := ask(scanned); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// byChat asks an engine for a chat.
func byChat(parse func(*jsonbody.Body) (*jsonbody.Body, *request.Chat, error)) func(*jsonbody.Body) error {
	return func(scanned *jsonbody.Body) error {
		body, chat, err := parse(scanned)
		if err != nil {
			return err
		}
		wire.AddChat(body, chat, prefix.New(0))
		llamaserver.Wire{}.Chat(body, chat, 0)
		return nil
	}
}

func asResponse(body *jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
	asked, bad := responses.Parse(body, request.Caps{})
	if bad != nil {
		return nil, nil, bad
	}
	made, chat, bad := asked.Upstream(asked.Input, nil, true)
	if bad != nil {
		return nil, nil, bad
	}
	return made, &chat, nil
}

func asNative(body *jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
	asked, bad := native.ParseChat(body, "m", request.Caps{})
	if bad != nil {
		return nil, nil, bad
	}
	made, bad := asked.Upstream([]translate.Item{asked.Input}, nil)
	if bad != nil {
		return nil, nil, bad
	}
	return made, &asked.Chat, nil
}

func asOllama(parse func(*jsonbody.Body, request.Caps) (*ollama.Request, *translate.Error)) func(*jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
	return func(body *jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
		asked, bad := parse(body, request.Caps{})
		if bad != nil {
			return nil, nil, bad
		}
		made, bad := asked.Upstream()
		if bad != nil {
			return nil, nil, bad
		}
		return made, &asked.Chat, nil
	}
}

// byCompletion asks an engine for a text completion.
func byCompletion(body *jsonbody.Body) error {
	asked, bad := openai.ParseCompletion(body, request.Caps{})
	if bad != nil {
		return bad
	}
	wire.AddText(asked, 0, prefix.New(0))
	llamaserver.Wire{}.Completion(body, asked, 0, 0)
	return nil
}

// byEmbedding asks an engine for embeddings, in parts.
func byEmbedding(body *jsonbody.Body) error {
	asked, bad := openai.ParseEmbedding(body)
	if bad != nil {
		return bad
	}
	for _, part := range asked.Parts() {
		llamaserver.Wire{}.Embeddings(body, part)
	}
	return nil
}

// byEmbed is byEmbedding as Ollama's clients ask.
func byEmbed(body *jsonbody.Body) error {
	asked, bad := ollama.ParseEmbed(body, request.Caps{})
	if bad != nil {
		return bad
	}
	for _, part := range ollama.Part(asked.Inputs).Parts() {
		llamaserver.Wire{}.Embeddings(body, part)
	}
	return nil
}
