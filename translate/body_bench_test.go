package translate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// BenchmarkBody is what a request's body of 1 MiB costs from its last byte to the engine's body and the chain of its prompt, by its
// shape: prose, code, and an agent's turns, whose messages have parts, calls and results.
func BenchmarkBody(b *testing.B) {
	source, err := os.ReadFile("chat_test.go")
	if err != nil {
		b.Fatal(err)
	}
	code := string(jsonbody.AppendString(nil, string(source[:4<<10])))
	prose := `"` + strings.Repeat("The quick brown fox jumps over the lazy dog, and that is all. ", 64) + `"`
	args := string(jsonbody.AppendString(nil, `{"path":"run.go","content":`+code+`}`))
	for _, tt := range []struct {
		name, turn string
		parse      func(*jsonbody.Body) (*jsonbody.Body, *request.Chat, error)
	}{
		{"prose", `{"role":"user","content":` + prose + `},{"role":"assistant","content":` + prose + `}`, asChat},
		{"code", `{"role":"user","content":` + code + `},{"role":"assistant","content":` + code + `}`, asChat},
		{
			"agent", `{"role":"user","content":[{"type":"text","text":` + prose + `},{"type":"text","text":` + code + `}]},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"write","arguments":` + args + `}}]},` +
				`{"role":"tool","tool_call_id":"call_1","content":` + code + `}`, asChat,
		},
		{
			"Anthropic", `{"role":"user","content":[{"type":"text","text":` + prose + `},{"type":"text","text":` + code + `}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"I write."},{"type":"tool_use","id":"toolu_1","name":"write","input":{"path":"run.go","content":` + code + `}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":` + code + `}]},{"role":"assistant","content":"Done."}`, asMessages,
		},
	} {
		b.Run(tt.name, func(b *testing.B) {
			raw := []byte(fmt.Sprintf(`{"model":"tinychat","max_tokens":8,"messages":[%s{"role":"user","content":"Go on."}]}`, strings.Repeat(tt.turn+",", 1<<20/len(tt.turn))))
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				scanned, bad := jsonbody.Scan(raw)
				if bad != nil {
					b.Fatal(bad)
				}
				body, chat, err := tt.parse(scanned)
				if err != nil {
					b.Fatal(err)
				}
				m := prefix.New(0)
				wire.AddChat(body, chat, m)
				llamaserver.Wire{}.Chat(body, chat, 0)
			}
		})
	}
}

func asChat(body *jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
	chat, bad := openai.ParseChat(body, request.Caps{})
	if bad != nil {
		return nil, nil, bad
	}
	return body, chat, nil
}

func asMessages(body *jsonbody.Body) (*jsonbody.Body, *request.Chat, error) {
	messages, bad := anthropic.ParseMessages(body, request.Caps{})
	if bad != nil {
		return nil, nil, bad
	}
	made, bad := messages.Upstream()
	if bad != nil {
		return nil, nil, bad
	}
	return made, &messages.Chat, nil
}
