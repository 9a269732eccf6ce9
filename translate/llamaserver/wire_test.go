package llamaserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestWire_Fault(t *testing.T) {
	t.Parallel()
	refusedFor := func(code, param, reason string) *translate.Error {
		return translate.Invalid(code, param, "The engine refused the request: "+reason)
	}
	refused := func(reason string) *translate.Error { return refusedFor("invalid_value", "", reason) }
	byTemplate := func(words string) *translate.Error {
		return translate.Invalid("invalid_value", "messages", "The model's chat template refuses the messages: "+words)
	}
	failed := func(status int, reason string) *translate.Error {
		return &translate.Error{Kind: translate.KindEngineFailed, Answered: status, Message: fmt.Sprintf("The engine answered with status %d: %s", status, reason)}
	}
	tests := map[string]struct {
		status int
		body   string
		want   *translate.Error
	}{
		"400": {
			400, `{"error":{"code":400,"message":"Invalid tool_choice: zzz","type":"invalid_request_error"}}`,
			refusedFor("invalid_value", "tool_choice", "Invalid tool_choice: zzz"),
		},
		"500 about a grammar that ends": {
			500, `{"error":{"code":500,"message":"got exception: Unexpected empty grammar stack after accepting piece: a (30)","type":"server_error"}}`,
			refusedFor("invalid_value", "grammar", "got exception: Unexpected empty grammar stack after accepting piece: a (30)"),
		},
		"500 about a format that isn't met": {
			500, `{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}`,
			refusedFor("format_not_met", "response_format", "The model produced output that does not match the expected peg-native format"),
		},
		"400 about a grammar that it can't read": {
			400, `{"error":{"code":400,"message":"Failed to initialize samplers: failed to parse grammar","type":"invalid_request_error"}}`,
			refusedFor("invalid_schema", "response_format", "Failed to initialize samplers: failed to parse grammar"),
		},
		"400 by the template": {
			400, `{"error":{"code":400,"message":"Unable to generate parser for this template. Automatic parser generation failed: \n------------\nWhile executing CallExpression at line 1, column 226 in source:\n...op.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate...\n                                           ^\nError: Jinja Exception: Roles must alternate!","type":"invalid_request_error"}}`,
			byTemplate("Roles must alternate!"),
		},
		"500 by the template": {
			500, `{"error":{"code":500,"message":"\n------------\nWhile executing MemberExpression at line 319, column 32 in source:\n... none %}\n   ^\nError: Cannot access property 'a' of None","type":"server_error"}}`,
			byTemplate("Cannot access property 'a' of None"),
		},
		"500 by the template, for what the engine lacks": {
			500, `{"error":{"code":500,"message":"NotImplemented: map: filter-mapping not implemented","type":"server_error"}}`,
			byTemplate("NotImplemented: map: filter-mapping not implemented"),
		},
		"500 by the template, of an older build": {
			500, `{"error":{"code":500,"message":"Roles must alternate at row 1, column 226:\n{{ bos_token }}\n ^\n","type":"server_error"}}`,
			byTemplate("Roles must alternate"),
		},
		"400 with its library's prefix": {
			400, `{"error":{"code":400,"message":"Field 'temperature': [json.exception.type_error.302] type must be number, but is string","type":"invalid_request_error"}}`,
			refusedFor("invalid_type", "temperature", "Field 'temperature': type must be number, but is string"),
		},
		"400 with the prefix first": {
			400, `{"error":{"code":400,"message":"[json.exception.parse_error.101] parse error at line 1, column 46: syntax error while parsing value - invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF; last read: '\"\\ud800x'","type":"invalid_request_error"}}`,
			refused(`parse error at line 1, column 46: syntax error while parsing value - invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF; last read: '"\ud800x'`),
		},
		"400 with the prefix twice": {
			400, `{"error":{"code":400,"message":"Failed: [json.exception.out_of_range.403] key 'a' not found; [json.exception.type_error.302] type must be string","type":"invalid_request_error"}}`,
			refused("Failed: key 'a' not found; type must be string"),
		},
		"400 with nothing but the prefix": {400, `{"error":{"code":400,"message":"[json.exception.parse_error.101]"}}`, refused("no reason was given.")},
		"400 with an open bracket":        {400, `{"error":{"code":400,"message":"a [json.exception.x b"}}`, refused("a [json.exception.x b")},
		"the prompt is too long": {
			400, `{"error":{"code":400,"message":"request (3613 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3613,"n_ctx":1024}}`,
			&translate.Error{
				Kind: translate.KindContextOverflow, Param: "messages", Tokens: 3613, Limit: 1024,
				Message: "The prompt has 3613 tokens, but the context length is 1024. Shorten the prompt, or load the model with a larger context_length.",
			},
		},
		"the context is full": {
			500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`,
			&translate.Error{Kind: translate.KindContextOverflow, Message: "The context is full. Shorten the prompt, or load the model with a larger context_length."},
		},
		"401": {
			401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`,
			failed(401, "Invalid API Key"),
		},
		"404": {404, `{"error":{"message":"File Not Found","type":"not_found_error","code":404}}`, failed(404, "File Not Found")},
		"500": {
			500, `{"error":{"code":500,"message":"Failed to parse tools: Expected 'tools' to be an array, got 3; tools = 3","type":"server_error"}}`,
			refusedFor("invalid_value", "tools", "Failed to parse tools: Expected 'tools' to be an array, got 3; tools = 3"),
		},
		"500 of its own": {
			500, `{"error":{"code":500,"message":"Failed to allocate a slot","type":"server_error"}}`,
			failed(500, "Failed to allocate a slot"),
		},
		"501": {
			501, "{\"error\":{\"code\":501,\"message\":\"This server does not support embeddings. Start it with `--embeddings`\",\"type\":\"not_supported_error\"}}",
			refusedFor("not_supported", "", "This server does not support embeddings. Start it with `--embeddings`"),
		},
		"503": {
			503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`,
			&translate.Error{Kind: translate.KindUnavailable, Message: "The engine is not ready: Loading model"},
		},
		"503 without a free slot": {
			503, `{"error":{"code":503,"message":"no slot available","type":"unavailable_error"}}`,
			&translate.Error{Kind: translate.KindUnavailable, Message: "The engine is not ready: no slot available"},
		},
		"the code in the body counts": {500, `{"error":{"code":400,"message":"bad"}}`, refused("bad")},
		"a code that is no status":    {500, `{"error":{"code":-32600,"message":"bad"}}`, failed(500, "bad")},
		"a code that is a word":       {400, `{"error":{"code":"bad_request","message":"bad"}}`, refused("bad")},
		"empty":                       {500, ``, failed(500, "no reason was given.")},
		"empty, the client's fault":   {400, ``, refused("no reason was given.")},
		"HTML":                        {502, "<html><body><h1>502 Bad Gateway</h1></body></html>", failed(502, "no reason was given.")},
		"not an object":               {500, `"error"`, failed(500, "no reason was given.")},
		"the error is a string":       {500, `{"error":"out of memory"}`, failed(500, "no reason was given.")},
		"a long message": {
			500, `{"error":{"message":"` + strings.Repeat("é", 400) + `"}}`, failed(500, strings.Repeat("é", 250)+"…"),
		},
		"a long message, cut in a letter": {
			500, `{"error":{"message":"x` + strings.Repeat("é", 400) + `"}}`, failed(500, "x"+strings.Repeat("é", 249)+"…"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Wire{}.Fault(tt.status, []byte(tt.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWire_Generates(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1/chat/completions": true, "/completion": true, "/infill": true,
		"/detokenize": false, "/v1/chat/completions/input_tokens": false, "/v1/embeddings": false, "/v1/rerank": false,
	} {
		if got := (Wire{}).Generates(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
