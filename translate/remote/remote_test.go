package remote

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

func wireOf(kind Kind) wire.Engine { return New(Model{Kind: kind, Remote: "gpu1", Name: "Org/Model"}) }

// sentChat returns what a server is sent of a client's chat.
func sentChat(t *testing.T, kind Kind, body string, choice int) string {
	t.Helper()
	scanned, bad := jsonbody.Scan([]byte(body))
	if bad != nil {
		t.Fatal(bad)
	}
	chat, bad := openai.ParseChat(scanned, request.Caps{Vision: true})
	if bad != nil {
		t.Fatal(bad)
	}
	u := wireOf(kind).Chat(scanned, chat, choice)
	var all []byte
	for _, piece := range u.Body {
		all = append(all, piece...)
	}
	var sent map[string]any
	if err := json.Unmarshal(all, &sent); err != nil {
		t.Fatalf("%s: %v", all, err)
	}
	sorted, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path + " " + string(sorted)
}

func TestChat_SendsWhatTheKindKnows(t *testing.T) {
	t.Parallel()
	const hello = `{"model":"mine","messages":[{"role":"user","content":"Hi"}],"user":"me","top_k":3,"min_p":0.1,"repeat_penalty":1.1,"n_predict":7,"seed":5,"stop":["x"],"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":false},"grammar":"root ::= x"}`
	for kind, want := range map[Kind]string{
		OpenAI:   `/v1/chat/completions {"max_tokens":7,"messages":[{"content":"Hi","role":"user"}],"model":"Org/Model","seed":6,"stream":true,"stream_options":{"include_usage":true}}`,
		VLLM:     `/v1/chat/completions {"chat_template_kwargs":{"enable_thinking":false},"max_tokens":7,"messages":[{"content":"Hi","role":"user"}],"min_p":0.1,"model":"Org/Model","repetition_penalty":1.1,"seed":6,"stream":true,"stream_options":{"include_usage":true},"top_k":3}`,
		LMStudio: `/v1/chat/completions {"max_tokens":7,"messages":[{"content":"Hi","role":"user"}],"min_p":0.1,"model":"Org/Model","repeat_penalty":1.1,"seed":6,"stream":true,"stream_options":{"include_usage":true},"top_k":3}`,
		Lmcaddy:  `/v1/chat/completions {"chat_template_kwargs":{"enable_thinking":false},"max_tokens":7,"messages":[{"content":"Hi","role":"user"}],"min_p":0.1,"model":"Org/Model","reasoning_effort":"none","repeat_penalty":1.1,"seed":6,"stream":true,"stream_options":{"include_usage":true},"top_k":3}`,
	} {
		if diff := cmp.Diff(want, sentChat(t, kind, hello, 1)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestChat_LeavesOutWhatMeansNothing(t *testing.T) {
	t.Parallel()
	got := sentChat(t, OpenAI, `{"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho","reasoning_content":"hm"},{"role":"user","content":"?"}],"seed":-1,"max_tokens":-1,"temperature":null}`, 0)
	want := `/v1/chat/completions {"messages":[{"content":"Hi","role":"user"},{"content":"Ho","role":"assistant"},{"content":"?","role":"user"}],"model":"Org/Model","stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sentChat(t, OpenAI, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":9}`, 0); !strings.Contains(got, `"max_completion_tokens":9`) {
		t.Errorf("sent: %s", got)
	}
}

// TestChat_AFormatBesideTools: llama-server is sent one format for an answer and for a call. Others have an order of their own.
func TestChat_AFormatBesideTools(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"a"}}]`
	const answer = `{"model":"m","messages":[{"role":"user","content":"Hi"}],` + tools + `,"response_format":{"type":"json_object"}}`
	const required = `{"model":"m","messages":[{"role":"user","content":"Hi"}],` + tools + `,"tool_choice":"required"}`
	for kind, isOne := range map[Kind]bool{LlamaServer: true, Lmcaddy: false, VLLM: false} {
		got := sentChat(t, kind, answer, 0)
		if strings.Contains(got, `"anyOf"`) != isOne || strings.Contains(got, `"tool_choice":"none"`) != isOne || strings.Contains(got, `"json_object"`) == isOne {
			t.Errorf("%s is sent %s", kind, got)
		}
		if got = sentChat(t, kind, required, 0); strings.Contains(got, `"tool_choice":"none"`) != isOne {
			t.Errorf("%s is sent %s", kind, got)
		}
		if wireOf(kind).Quirks().WritesCalls != isOne {
			t.Errorf("%s", kind)
		}
	}
}

func TestKinds_CanDoWhatTheyCan(t *testing.T) {
	t.Parallel()
	counts, ranks := map[Kind]bool{VLLM: true, LlamaServer: true, Lmcaddy: true}, map[Kind]bool{VLLM: true, LlamaServer: true, Lmcaddy: true, SGLang: true}
	for _, kind := range Kinds {
		_, doesCount := wireOf(kind).(wire.Counter)
		_, doesRank := wireOf(kind).(wire.Ranker)
		if doesCount != counts[kind] || doesRank != ranks[kind] {
			t.Errorf("%s: counts %t, ranks %t", kind, doesCount, doesRank)
		}
	}
}

// decoded returns the events of a stream that is cut into pieces of a size.
func decoded(t *testing.T, d translate.Decoder, stream string, size int) []translate.Event {
	t.Helper()
	var events []translate.Event
	emit := func(ev translate.Event) error {
		if probs, ok := ev.(translate.Logprobs); ok {
			ev = translate.Logprobs{Content: append(json.RawMessage{}, probs.Content...)}
		}
		events = append(events, ev)
		return nil
	}
	for at := 0; at < len(stream); at += size {
		if err := d.Feed([]byte(stream[at:min(at+size, len(stream))]), emit); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(emit); err != nil {
		t.Fatal(err)
	}
	return events
}

// The streams are in the shapes that the servers send.
var streams = map[string]struct {
	stream string
	want   []translate.Event
}{
	"vLLM, thinking in reasoning": {
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning":"hm"},"logprobs":null,"finish_reason":null,"token_ids":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Paris"},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}]}

data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3,"prompt_tokens_details":null}}

data: [DONE]

`,
		[]translate.Event{
			translate.Reasoning{Text: "hm"},
			translate.Text{Text: "Paris"},
			translate.Usage{Prompt: 9, Completion: 3, Reasoning: 1},
			translate.Finish{Reason: translate.FinishStop},
		},
	},
	"SGLang, thinking in reasoning_content, reason matched_stop": {
		`data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"finish_reason":null,"matched_stop":null}],"usage":null}

data: {"id":"1","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"hm","tool_calls":null},"finish_reason":null}],"usage":null}

data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"abort"}],"usage":null}

data: {"id":"1","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}

data: [DONE]

`,
		[]translate.Event{
			translate.Reasoning{Text: "hm"},
			translate.Text{Text: "Hi"},
			translate.Usage{Prompt: 5, Cached: 4, Completion: 2, Reasoning: 1},
			translate.Finish{Reason: translate.FinishStop},
		},
	},
	"mixed calls": {
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":""}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"two"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"[]"}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`,
		[]translate.Event{
			translate.CallStart{ID: "a", Name: "one"},
			translate.CallStart{Index: 1, ID: "b", Name: "two"},
			translate.CallArgs{Text: "{}"},
			translate.CallArgs{Index: 1, Text: "[]"},
			translate.CallDone{},
			translate.CallDone{Index: 1},
			translate.Usage{Completion: 4},
			translate.Finish{Reason: translate.FinishToolCalls},
		},
	},
	"Ollama, whole calls under one index": {
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_2","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}]},"finish_reason":"stop"}]}

`,
		[]translate.Event{
			translate.CallStart{ID: "call_1", Name: "f"},
			translate.CallArgs{Text: `{"a":1}`},
			translate.CallStart{Index: 1, ID: "call_2", Name: "f"},
			translate.CallArgs{Index: 1, Text: `{"a":2}`},
			translate.CallDone{},
			translate.CallDone{Index: 1},
			translate.Usage{Completion: 6},
			translate.Finish{Reason: translate.FinishToolCalls},
		},
	},
	"it breaks off": {
		`data: {"choices":[{"delta":{"content":"Hi"}}]}

`,
		[]translate.Event{translate.Text{Text: "Hi"}, translate.Usage{Completion: 1}, translate.Fault{Err: translate.BrokenOff()}},
	},
	"an error amid the stream": {
		`data: {"choices":[{"delta":{"content":"Hi"}}]}

data: {"error": {"message": "CUDA out of memory", "type": "InternalServerError", "param": null, "code": 500}}

data: [DONE]

`,
		[]translate.Event{
			translate.Text{Text: "Hi"},
			translate.Usage{Completion: 1},
			translate.Fault{Err: &translate.Error{Kind: translate.KindEngineFailed, Answered: 500, Message: "The remote gpu1 answered with status 500: CUDA out of memory"}},
		},
	},
	"a page": {
		`<html>`, []translate.Event{translate.Fault{Err: &translate.Error{Kind: translate.KindEngineFailed, Message: "The answer of the remote gpu1 can't be read: it is not what servers of its kind send."}}},
	},
	"an answer in one piece": {
		`
{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},

"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}`,
		[]translate.Event{
			translate.Reasoning{Text: "hm"},
			translate.Text{Text: "Hi"},
			translate.CallStart{ID: "c1", Name: "f"},
			translate.CallArgs{Text: "{}"},
			translate.CallDone{},
			translate.Usage{Prompt: 3, Completion: 9, Reasoning: 1},
			translate.Finish{Reason: translate.FinishToolCalls},
		},
	},
	"an answer in one piece that breaks off": {
		`{"object":"chat.completion","choices":[{"index":0,"mess`, []translate.Event{translate.Fault{Err: translate.BrokenOff()}},
	},
	"an error with status 200": {
		`{"error":"Unexpected endpoint or method. (POST /v1/chat/completions)"}`,
		[]translate.Event{translate.Fault{Err: &translate.Error{Kind: translate.KindEngineFailed, Message: "The remote gpu1 failed: Unexpected endpoint or method. (POST /v1/chat/completions)"}}},
	},
	"a byte order mark, CRLF and data of several lines": {
		"\xef\xbb\xbfdata: {\"choices\":[{\"delta\":\r\ndata: {\"content\":\"Hi\"}}]}\r\n\r\n: comment\r\n\r\nid: 1\r\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\r\n\r\n",
		[]translate.Event{translate.Text{Text: "Hi"}, translate.Usage{Completion: 1}, translate.Finish{Reason: translate.FinishStop}},
	},
	"nothing": {
		"\n", []translate.Event{translate.Fault{Err: translate.BrokenOff()}},
	},
	"llama-server, with progress and timings": {
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}],"prompt_progress":{"total":20,"cache":5,"processed":20,"time_ms":3}}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}]}

data: {"choices":[{"finish_reason":"length","index":0,"delta":{}}]}

data: {"choices":[],"usage":{"completion_tokens":1,"prompt_tokens":20,"prompt_tokens_details":{"cached_tokens":5}},"timings":{"prompt_ms":2.5,"predicted_ms":4,"predicted_per_second":250}}

data: [DONE]

`,
		[]translate.Event{
			translate.Prompt{Total: 20, Cached: 5, Processed: 20},
			translate.Text{Text: "Hi"},
			translate.Usage{Prompt: 20, Cached: 5, Completion: 1},
			translate.Timings{PromptMillis: 2.5, PredictedMillis: 4, PredictedPerSecond: 250},
			translate.Finish{Reason: translate.FinishLength},
		},
	},
}

func TestDecoder(t *testing.T) {
	t.Parallel()
	for name, tt := range streams {
		for _, size := range []int{1, 7, 100, 1 << 20} { // any cutting of the bytes gives the same events
			if diff := cmp.Diff(tt.want, decoded(t, wireOf(VLLM).Decoder(), tt.stream, size)); diff != "" {
				t.Errorf("%s, in pieces of %d (-want +got):\n%s", name, size, diff)
			}
		}
	}
}

func TestDecoder_OfTextCompletions(t *testing.T) {
	t.Parallel()
	const stream = `data: {"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" Paris","logprobs":null,"finish_reason":null}]}

data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}

data: [DONE]

`
	d := wireOf(VLLM).(wire.Completer).CompletionDecoder(&request.Completion{})
	want := []translate.Event{translate.Text{Text: " Paris"}, translate.Usage{Prompt: 3, Completion: 1}, translate.Finish{Reason: translate.FinishLength}}
	if diff := cmp.Diff(want, decoded(t, d, stream, 9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzDecoder(f *testing.F) {
	for _, tt := range streams {
		f.Add(tt.stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		whole := decoded(t, wireOf(VLLM).Decoder(), stream, len(stream)+1)
		if diff := cmp.Diff(whole, decoded(t, wireOf(VLLM).Decoder(), stream, 3)); diff != "" {
			t.Errorf("cutting changes the events (-whole +cut):\n%s", diff)
		}
		switch whole[len(whole)-1].(type) {
		case translate.Finish, translate.Fault:
		default:
			t.Errorf("the last event is %T", whole[len(whole)-1])
		}
	})
}

func TestFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		want   translate.Error
	}{
		"vLLM, the prompt is too long": {
			400, `{"error":{"message":"This model's maximum context length is 2048 tokens. However, your request has 3000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}}`,
			*translate.Overflow(3000, 2048),
		},
		"vLLM before, without the wrapping object": {
			400, `{"object":"error","message":"This model's maximum context length is 2048 tokens. However, you requested 2500 tokens (2300 in the messages, 200 in the completion).","type":"BadRequestError","param":null,"code":400}`,
			*translate.Overflow(2500, 2048),
		},
		"SGLang": {
			400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","param":null,"code":400}`,
			*translate.Overflow(5000, 4096),
		},
		"llama-server": {
			400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":300,"n_ctx":256}}`,
			*translate.Overflow(300, 256),
		},
		"llama-server, of an embedding": {
			500, `{"error":{"code":500,"message":"input (1201 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`,
			*translate.Overflow(1201, 512),
		},
		"lmcaddy": {
			400, `{"error":{"message":"The prompt has 300 tokens, but the context length is 256. Shorten it.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			*translate.Overflow(300, 256),
		},
		"OpenAI, without figures": {
			400, `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`,
			translate.Error{Kind: translate.KindContextOverflow, Param: "messages", Message: "The prompt and the answer are longer than the context of the model on the remote gpu1: Your input exceeds the context window of this model."},
		},
		"a bad key, which isn't repeated": {
			401, `{"error":{"message":"Incorrect API key provided: sk-secret123456","code":"invalid_api_key"}}`,
			translate.Error{Kind: translate.KindEngineFailed, Code: "remote_key_refused", Message: "The remote gpu1 refused the key that it was sent (status 401). The administrator has to correct it in the block of the remote."},
		},
		"a model that is gone": {
			404, `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","code":404}`,
			translate.Error{Kind: translate.KindUnavailable, Code: "remote_model_missing", Message: "The remote gpu1 doesn't know the model Org/Model any more, or not this kind of request."},
		},
		"too many": {
			429, `{"error":{"message":"Too many requests, see http://10.0.0.7:9000/limits"}}`,
			translate.Error{Kind: translate.KindQueueFull, Code: "remote_busy", Message: "The remote gpu1 takes no more requests at the moment: Too many requests, see …"},
		},
		"FastAPI's check": {
			422, `{"detail":[{"loc":["body"],"msg":"field required","type":"value_error"}]}`,
			translate.Error{Kind: translate.KindInvalid, Code: "invalid_value", Message: "The remote gpu1 refused the request: field required"},
		},
		"no JSON": {
			502, `<html>Bad gateway</html>`,
			translate.Error{Kind: translate.KindEngineFailed, Answered: 502, Message: "The remote gpu1 answered with status 502: no reason was given."},
		},
	} {
		if diff := cmp.Diff(&tt.want, wireOf(VLLM).Fault(tt.status, []byte(tt.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEmbedded_ReadsNumbersAndBase64(t *testing.T) {
	t.Parallel()
	w := wireOf(OpenAI).(wire.Embedder)
	want := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5)), math.Float32bits(-1))
	for _, vector := range []string{`[0.5,-1]`, `"AAAAPwAAgL8="`} {
		got, bad := w.Embedded([]byte(`{"data":[{"index":0,"embedding":`+vector+`}],"usage":{"prompt_tokens":3}}`), 1)
		if bad != nil {
			t.Fatal(bad)
		}
		if diff := cmp.Diff(&request.Embedded{Vectors: [][]byte{want}, Prompt: 3}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", vector, diff)
		}
	}
	for _, broken := range []string{`[]`, `{"data":[]}`, `{"data":[{"index":1,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[1e300]}]}`, `{"data":[{"index":0,"embedding":"AAA="}]}`, `{"data":[{"index":0,"embedding":[]}]}`} {
		if _, bad := w.Embedded([]byte(broken), 1); bad == nil {
			t.Errorf("%s is accepted", broken)
		}
	}
}

func TestReranked_ReadsBothShapes(t *testing.T) {
	t.Parallel()
	w := wireOf(SGLang).(wire.Ranker)
	for _, answer := range []string{
		`{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}]}`, `[{"score":0.9,"document":"b","index":1},{"score":0.1,"index":0}]`,
	} {
		got, bad := w.Reranked([]byte(answer), 2)
		if bad != nil {
			t.Fatal(bad)
		}
		if diff := cmp.Diff([]float64{0.1, 0.9}, got.Scores); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
	if _, bad := w.Reranked([]byte(`{"results":[{"index":0,"relevance_score":1}]}`), 2); bad == nil {
		t.Error("a missing rank is accepted")
	}
}
