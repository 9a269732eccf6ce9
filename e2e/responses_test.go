package e2e

import (
	"encoding/json"
	"image/color"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The events of the items of a response, without their prefix.
const (
	thoughtItem  = " output_item.added:reasoning content_part.added reasoning_text.delta+ reasoning_text.done content_part.done output_item.done"
	messageItem  = " output_item.added:message content_part.added output_text.delta+ output_text.done content_part.done output_item.done"
	functionItem = " output_item.added:function_call function_call_arguments.delta+ function_call_arguments.done output_item.done"
	listItem     = " output_item.added:mcp_list_tools mcp_list_tools.in_progress mcp_list_tools.completed output_item.done"
	callItem     = " output_item.added:mcp_call mcp_call.in_progress mcp_call_arguments.delta+ mcp_call_arguments.done mcp_call.completed output_item.done"
)

var (
	sayFunction  = function("echo", harness.Fields{"message": harness.Fields{"type": "string"}})
	moodFunction = function("status", harness.Fields{})
	cityFormat   = harness.Fields{"format": harness.Fields{
		"type": "json_schema", "name": "city", "strict": true, "schema": harness.Fields{
			"type": "object", "required": []string{"city"}, "additionalProperties": false,
			"properties": harness.Fields{"city": harness.Fields{"type": "string", "enum": []string{"Paris", "Rome"}}},
		},
	}}
)

// function is a tool that the client runs, all of whose arguments are required.
func function(name string, properties harness.Fields) harness.Fields {
	names := []string{}
	for property := range properties {
		names = append(names, property)
	}
	return harness.Fields{
		"type": "function", "name": name, "description": "A tool of a test",
		"parameters": harness.Fields{"type": "object", "properties": properties, "required": names},
	}
}

// withoutIDs returns items without what differs from one answer to the next.
func withoutIDs(items gjson.Result) any {
	list, _ := items.Value().([]any)
	for _, item := range list {
		delete(item.(map[string]any), "id")
		delete(item.(map[string]any), "call_id")
	}
	return list
}

func TestResponses_InOnePieceAndStreamed(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, responsesInOnePieceAndStreamed)
}

func responsesInOnePieceAndStreamed(t *testing.T, s *harness.Server) {
	for name, tt := range map[string]struct {
		request harness.Fields
		order   string
		status  string
		text    string
	}{
		"a message":          {harness.RespondAsk(capital).Quick(), messageItem, "completed", paris},
		"thoughts":           {harness.RespondAsk(capital), thoughtItem + messageItem, "completed", paris},
		"a function call":    {harness.RespondAsk(useEchoTool).Quick().With("tools", []any{sayFunction}), functionItem, "completed", ""},
		"thoughts, a call":   {harness.RespondAsk(useEchoTool).With("tools", []any{sayFunction}), thoughtItem + functionItem, "completed", ""},
		"a limit":            {harness.RespondLong(40), messageItem, "incomplete", counted[:40]},
		"a limit of thought": {harness.RespondAsk(capital).With("max_output_tokens", 3), thoughtItem, "incomplete", ""},
		"not stored":         {harness.RespondAsk(capital).Quick().With("store", false), messageItem, "completed", paris},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			body, st := s.Respond(tt.request), s.RespondStream(tt.request)
			if diff := cmp.Diff("created in_progress"+tt.order+" "+tt.status, st.Order()); diff != "" {
				t.Errorf("the events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(withoutIDs(body.Get("output")), withoutIDs(st.Final.Get("output"))); diff != "" {
				t.Errorf("in one piece (-) and streamed (+):\n%s", diff)
			}
			if body.Get("status").Str != tt.status || !strings.HasPrefix(harness.ResponseText(body), tt.text) {
				t.Errorf("want %s and %q: %s", tt.status, tt.text, body.Raw)
			}
			if got, want := st.Final.Get("usage.output_tokens").Int(), body.Get("usage.output_tokens").Int(); got != want {
				t.Errorf("%d output tokens streamed, %d in one piece", got, want)
			}
			thought := body.Get("usage.output_tokens_details.reasoning_tokens").Int()
			if (thought > 0) != strings.Contains(tt.order, "reasoning") {
				t.Errorf("%d reasoning tokens", thought)
			}
			for _, response := range []gjson.Result{body, st.Final} {
				_, isStored := tt.request["store"]
				if r := s.Get(harness.RespondPath + "/" + response.Get("id").Str); (r.Status == http.StatusOK) == isStored {
					t.Errorf("GET has the status %d", r.Status)
				}
			}
		})
	}
}

func TestResponses_ResultOfAFunctionIsGivenToTheModel(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, responsesResultOfAFunctionIsGivenToTheModel)
}

func responsesResultOfAFunctionIsGivenToTheModel(t *testing.T, s *harness.Server) {
	tools := []any{sayFunction}
	for name, request := range map[string]harness.Fields{"thinking": harness.RespondAsk(useEchoTool), "quick": harness.RespondAsk(useEchoTool).Quick()} {
		for _, isStream := range []bool{false, true} {
			request := request.With("tools", tools)
			first := harness.Fields{}
			t.Run(name, func(t *testing.T) {
				s := s.In(t)
				body := respondEither(s, request, isStream)
				output := body.Get("output").Array()
				call := output[len(output)-1]
				if call.Get("name").Str != "echo" || gjson.Get(call.Get("arguments").Str, "message").Str != "hello world" {
					t.Fatalf("no call: %s", body.Raw)
				}
				result := harness.Fields{"type": "function_call_output", "call_id": call.Get("call_id").Str, "output": redRiver}
				resent := []any{harness.Fields{"role": "user", "content": useEchoTool}}
				byReference := slices.Clone(resent)
				for _, item := range output {
					resent = append(resent, json.RawMessage(item.Raw))
					byReference = append(byReference, harness.Fields{"type": "item_reference", "id": item.Get("id").Str})
				}
				parts := harness.Fields{"type": "function_call_output", "call_id": call.Get("call_id").Str, "output": []any{
					harness.Fields{"type": "input_text", "text": redRiver},
				}}
				for way, next := range map[string]harness.Fields{
					"by previous_response_id": request.With("input", []any{result}).After(body.Get("id").Str),
					"by the same items":       request.With("input", append(resent, result)),
					"by references":           request.With("input", append(byReference, result)),
					"as parts":                request.With("input", []any{parts}).After(body.Get("id").Str),
				} {
					answer := respondEither(s, next, isStream)
					if text := harness.ResponseText(answer); text != returned+redRiver {
						t.Errorf("%s: %q", way, text)
					}
					input := answer.Get("usage.input_tokens").Int()
					if was, isThere := first["input"]; isThere && was != input {
						t.Errorf("%s: %d input tokens, another way %d", way, input, was)
					}
					first["input"] = input
				}
			})
		}
	}
}

// respondEither requests a response in one piece, or as a stream.
func respondEither(s *harness.Server, request harness.Fields, isStream bool) gjson.Result {
	s.T.Helper()
	if isStream {
		return s.RespondStream(request).Final
	}
	return s.Respond(request)
}

func TestResponses_ToolChoiceHolds(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	both := []any{sayFunction, moodFunction}
	status, echo := harness.Fields{"type": "function", "name": "status"}, harness.Fields{"type": "function", "name": "echo"}
	for name, tt := range map[string]struct {
		choice any
		want   string // the function that is called; empty: none
	}{
		"auto":              {"auto", ""},
		"none":              {"none", ""},
		"required":          {"required", "any"},
		"a name":            {status, "status"},
		"another name":      {echo, "echo"},
		"allowed, required": {harness.Fields{"type": "allowed_tools", "mode": "required", "tools": []any{status}}, "status"},
		"allowed, another":  {harness.Fields{"type": "allowed_tools", "mode": "required", "tools": []any{echo}}, "echo"},
		"allowed, auto":     {harness.Fields{"type": "allowed_tools", "mode": "auto", "tools": []any{status}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for effort, request := range map[string]harness.Fields{"thinking": harness.RespondAsk(capital), "quick": harness.RespondAsk(capital).Quick()} {
				request = request.With("tools", both).With("tool_choice", tt.choice)
				for _, isStream := range []bool{false, true} {
					body := respondEither(s.In(t), request, isStream)
					called := body.Get(`output.#(type=="function_call")#.name`).Array()
					switch {
					case tt.want == "" && (len(called) > 0 || harness.ResponseText(body) == ""):
						t.Errorf("%s: a call: %s", effort, body.Raw)
					case tt.want != "" && (len(called) != 1 || tt.want != "any" && called[0].Str != tt.want || harness.ResponseText(body) != ""):
						t.Errorf("%s: not one call of %s: %s", effort, tt.want, body.Raw)
					}
				}
			}
		})
	}
}

func TestResponses_StructuredOutputAfterReasoning(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for name, text := range map[string]harness.Fields{
		"a schema":       cityFormat,
		"without strict": {"format": harness.Fields{"type": "json_schema", "name": "city", "strict": nil, "schema": cityFormat["format"].(harness.Fields)["schema"]}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isStream := range []bool{false, true} {
				body := respondEither(s.In(t), harness.RespondAsk(capital).With("text", text).With("max_output_tokens", 400), isStream)
				city := gjson.Get(harness.ResponseText(body), "city").Str
				if harness.ResponseThoughts(body) == "" || city != "Paris" && city != "Rome" {
					t.Errorf("%s", body.Raw)
				}
				if got := body.Get("text.format.name").Str; got != "city" {
					t.Errorf("the format is told as %s", body.Get("text").Raw)
				}
			}
		})
	}
}

func TestResponses_LogProbabilities(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	request := harness.RespondAsk(capital).Quick().With("include", []string{"message.output_text.logprobs", "reasoning.encrypted_content"})
	for _, top := range []int{0, 2} {
		body, st := s.Respond(request.With("top_logprobs", top)), s.RespondStream(request.With("top_logprobs", top))
		for _, response := range []gjson.Result{body, st.Final} {
			tokens := response.Get("output.0.content.0.logprobs")
			var text strings.Builder
			for _, token := range tokens.Array() {
				text.WriteString(token.Get("token").Str)
				if n := len(token.Get("top_logprobs").Array()); n != top {
					t.Errorf("%d of %d likely tokens: %s", n, top, token.Raw)
				}
			}
			if text.String() != paris {
				t.Errorf("the tokens are %s", tokens.Raw)
			}
		}
	}
}

// TestResponses_EchoesTheRequest: what clients look at in the answer is what they sent.
func TestResponses_EchoesTheRequest(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	sent := harness.Fields{
		"model": harness.Model, "input": "Hello", "instructions": "Be brief.", "metadata": harness.Fields{"a": "b"}, "temperature": 0.5, "top_p": 0.5,
		"max_output_tokens": 400, "max_tool_calls": 3, "parallel_tool_calls": false, "truncation": "auto", "safety_identifier": "me", "prompt_cache_key": "key",
		"service_tier": "auto", "tools": []any{sayFunction.With("strict", true)}, "tool_choice": "auto", "reasoning": harness.Fields{"effort": "low", "summary": "auto"},
	}
	body, st := s.Respond(sent), s.RespondStream(sent)
	for _, response := range []gjson.Result{body, st.Final, st.Events[0].Data.Get("response"), s.Stored(body.Get("id").Str)} {
		for name, want := range map[string]any{
			"model": harness.Model, "instructions": "Be brief.", "metadata": map[string]any{"a": "b"}, "temperature": 0.5, "top_p": 0.5,
			"max_output_tokens": 400.0, "max_tool_calls": 3.0, "parallel_tool_calls": false, "truncation": "disabled", "safety_identifier": "me", "prompt_cache_key": "key",
			"service_tier": "default", "tool_choice": "auto", "tools.0.name": "echo", "tools.0.strict": true, "store": true, "background": false,
			"previous_response_id": nil, "reasoning.effort": "low",
		} {
			if diff := cmp.Diff(want, response.Get(name).Value()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestResponses_LenientInputs: what strict and careless clients send is taken.
func TestResponses_LenientInputs(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	ada := []any{harness.Fields{"role": "user", "content": "My name is Ada."}, harness.Fields{"role": "assistant", "content": "Nice to meet you, Ada!"}}
	question := harness.Fields{"type": "message", "role": "user", "content": []any{harness.Fields{"type": "input_text", "text": whoAmI}}}
	const ada2 = "Your name is Ada."
	nulls := harness.RespondAsk(capital).Quick()
	for _, name := range []string{
		"instructions", "previous_response_id", "store", "stream", "stream_options", "background", "include", "max_output_tokens", "max_tool_calls",
		"metadata", "parallel_tool_calls", "prompt", "prompt_cache_key", "safety_identifier", "service_tier", "top_p", "top_logprobs", "text", "tool_choice",
		"tools", "truncation", "user", "conversation", "context_management",
	} {
		nulls[name] = nil
	}
	nullTool := sayFunction.With("strict", nil).With("description", nil).With("defer_loading", nil)
	for name, tt := range map[string]struct {
		request harness.Fields
		want    string
	}{
		"nulls":           {nulls, paris},
		"nulls in a tool": {harness.RespondAsk(capital).Quick().With("tools", []any{nullTool}), paris},
		"a function without parameters": {
			harness.RespondAsk(capital).Quick().With("tools", []any{harness.Fields{"type": "function", "name": "status", "parameters": nil, "strict": nil}}), paris,
		},
		"empty objects": {harness.RespondAsk(capital).Quick().With("text", harness.Fields{}).With("include", []any{}).With("metadata", harness.Fields{}), paris},
		"unknown fields": {
			harness.RespondAsk(capital).Quick().With("client_metadata", harness.Fields{"a": 1}).With("moderation", harness.Fields{"x": nil}).With("stream_options", harness.Fields{"include_obfuscation": false}), paris,
		},
		"a history":           {harness.RespondAsk(append(slices.Clone(ada), question)).Quick(), ada2},
		"developers, at once": {harness.RespondAsk([]any{developer("a"), developer("b"), ada[0], ada[1], question}).Quick(), ada2},
		"developers, later":   {harness.RespondAsk([]any{developer("a"), ada[0], ada[1], developer("b"), question}).Quick(), ada2},
		"items of an answer": {harness.RespondAsk([]any{
			ada[0],
			harness.Fields{"type": "reasoning", "id": "rs_1", "summary": []any{}, "content": []any{harness.Fields{"type": "reasoning_text", "text": "Hm."}}, "encrypted_content": nil},
			harness.Fields{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []any{
				harness.Fields{"type": "output_text", "text": "Nice to meet you, Ada!", "annotations": []any{}, "logprobs": []any{}},
			}},
			question,
		}).Quick(), ada2},
		"a refusal":          {harness.RespondAsk([]any{ada[0], harness.Fields{"role": "assistant", "content": []any{harness.Fields{"type": "refusal", "refusal": "Nice to meet you, Ada!"}}}, question}).Quick(), ada2},
		"a lost thought":     {harness.RespondAsk(append([]any{harness.Fields{"type": "item_reference", "id": "rs_0123"}}, append(slices.Clone(ada), question)...)).Quick(), ada2},
		"tools that we lack": {harness.RespondAsk(capital).Quick().With("tools", []any{harness.Fields{"type": "web_search"}, harness.Fields{"type": "namespace", "name": "n", "tools": []any{}}, harness.Fields{"type": "custom", "name": "c"}}), paris},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isStream := range []bool{false, true} {
				request := tt.request
				if _, isNull := request["stream"]; isNull && !isStream {
					request = request.With("stream", nil)
				}
				if text := harness.ResponseText(respondEither(s.In(t), request, isStream)); text != tt.want {
					t.Errorf("stream %v: %q, want %q", isStream, text, tt.want)
				}
			}
		})
	}
}

func developer(text string) harness.Fields {
	return harness.Fields{"type": "message", "role": "developer", "id": "msg_" + text, "content": []any{harness.Fields{"type": "input_text", "text": "You are helpful."}}}
}

// TestResponses_EmptyInputLoadsTheModel: coding agents send this first, and take anything but a success for a broken server.
func TestResponses_EmptyInputLoadsTheModel(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"list_models all"}})
	body := s.Respond(harness.Fields{"model": harness.Model, "input": "", "max_output_tokens": 1})
	if status := body.Get("status").Str; status != "completed" && status != "incomplete" {
		t.Errorf("%s", body.Raw)
	}
	if n := len(s.Engines()); n != 1 {
		t.Errorf("%d engines", n)
	}
	if text := harness.ResponseText(s.Respond(harness.RespondAsk(capital).Quick())); text != paris {
		t.Errorf("%q", text)
	}
}

func TestResponses_Refused(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	ask := harness.RespondAsk(capital)
	output := harness.Fields{"type": "function_call_output", "call_id": "call_x", "output": "1"}
	call := harness.Fields{"type": "function_call", "call_id": "call_x", "name": "echo", "arguments": "{}"}
	unknown := "resp_" + strings.Repeat("0a", 24)
	for name, tt := range map[string]struct {
		request harness.Fields
		status  int
		param   string
		code    string // empty: any
		message string
	}{
		"no model":               {harness.Fields{"input": "Hello"}, 400, "model", "missing_required_parameter", ""},
		"an unknown model":       {ask.With("model", "nope"), 404, "model", "model_not_found", ""},
		"no input":               {harness.Fields{"model": harness.Model}, 400, "input", "missing_required_parameter", ""},
		"an input of numbers":    {ask.With("input", 7), 400, "input", "invalid_type", ""},
		"an unknown previous":    {ask.After(unknown), 400, "previous_response_id", "previous_response_not_found", "Previous response with id '" + unknown + "' not found."},
		"an odd previous":        {ask.After("hello"), 400, "previous_response_id", "", ""},
		"an unknown item":        {ask.With("input", []any{harness.Fields{"type": "item_reference", "id": "msg_1"}}), 404, "input", "", "msg_1"},
		"a conversation":         {ask.With("conversation", "conv_1"), 400, "conversation", "", ""},
		"a result of no call":    {ask.With("input", []any{output}), 400, "input", "", "No tool call found for function call output with call_id call_x."},
		"a call without result":  {ask.With("input", []any{call, harness.Fields{"role": "user", "content": "Hello"}}), 400, "input", "", "No tool output found for function call call_x."},
		"a role":                 {ask.With("input", []any{harness.Fields{"role": "king", "content": "a"}}), 400, "input[0].role", "", ""},
		"an image":               {ask.With("input", []any{harness.Fields{"role": "user", "content": []any{harness.Fields{"type": "input_image", "image_url": picture(t, color.White)["data_url"]}}}}), 400, "", "unsupported_content", ""},
		"a function's name":      {ask.With("tools", []any{harness.Fields{"type": "function"}}), 400, "tools[0].name", "", ""},
		"tools of no type":       {ask.With("tools", []any{harness.Fields{"name": "a"}}), 400, "tools[0].type", "", ""},
		"a choice without tools": {ask.With("tool_choice", "required"), 400, "tool_choice", "", ""},
		"a choice of another":    {ask.With("tools", []any{sayFunction}).With("tool_choice", harness.Fields{"type": "function", "name": "x"}), 400, "tool_choice", "", ""},
		"a temperature":          {ask.With("temperature", 3), 400, "temperature", "", ""},
		"a limit of 0":           {ask.With("max_output_tokens", 0), 400, "max_output_tokens", "", ""},
		"a format":               {ask.With("text", harness.Fields{"format": harness.Fields{"type": "xml"}}), 400, "text.format.type", "", ""},
		"a schema":               {ask.With("text", harness.Fields{"format": harness.Fields{"type": "json_schema", "name": "x"}}), 400, "text.format.schema", "", ""},
		"background, not stored": {ask.With("background", true).With("store", false), 400, "", "", ""},
		"a file":                 {ask.With("input", []any{harness.Fields{"role": "user", "content": []any{harness.Fields{"type": "input_file", "file_id": "f"}}}}), 400, "", "", ""},
		"too long":               {ask.With("input", strings.Repeat("hello ", 20_000)), 400, "", "context_length_exceeded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isStream := range []bool{false, true} {
				r := s.In(t).Post(harness.RespondPath, tt.request.With("stream", isStream))
				e := r.Get("error")
				if r.Status != tt.status || tt.param != "" && e.Get("param").Str != tt.param || tt.code != "" && e.Get("code").Str != tt.code || !strings.Contains(e.Get("message").Str, tt.message) {
					t.Errorf("stream %v: status %d, want %d, %q, %q, %q: %s", isStream, r.Status, tt.status, tt.param, tt.code, tt.message, r.Body)
				}
				wantOpenAIError(t, r, "invalid_request_error", e.Get("code").Str)
			}
		})
	}
	if text := harness.ResponseText(s.Respond(ask.Quick())); text != paris {
		t.Errorf("afterwards: %q", text)
	}
}
