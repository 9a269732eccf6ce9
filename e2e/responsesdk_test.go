package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestResponses_OpenAISDK runs OpenAI's own library for Go.
func TestResponses_OpenAISDK(t *testing.T) {
	url := harness.StartEverything(t, "streamableHttp")
	runOpenAI(t, harness.Start(harness.NewHome(t), harness.Config{LM: openRemote}), responsesChecks(url))
}

// responsesChecks are the checks of responses, by their names. They use the MCP server at a URL.
func responsesChecks(url string) map[string]func(*testing.T, *openai.Client) {
	return map[string]func(*testing.T, *openai.Client){
		"create":            responsesCreate,
		"stream":            responsesStream,
		"a function":        responsesFunction,
		"structured output": responsesStructured,
		"stored":            responsesStored,
		"background":        responsesBackground,
		"remote MCP":        func(t *testing.T, client *openai.Client) { responsesRemote(t, client, url) },
		"compact, count":    responsesCompact,
		"errors":            responsesErrors,
	}
}

func sdkRespond(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: harness.Model, Temperature: openai.Float(0), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)},
	}
}

func sdkCreate(t *testing.T, client *openai.Client, request responses.ResponseNewParams) *responses.Response {
	t.Helper()
	got, err := client.Responses.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// sdkEvents reads a stream, and returns the types of its events and the last response.
func sdkEvents(t *testing.T, client *openai.Client, request responses.ResponseNewParams) (types []string, last *responses.Response) {
	t.Helper()
	stream := client.Responses.NewStreaming(t.Context(), request)
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	for stream.Next() {
		ev := stream.Current()
		types = append(types, ev.Type)
		switch ev := ev.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text.WriteString(ev.Delta)
		case responses.ResponseCompletedEvent:
			last = &ev.Response
		case nil:
			t.Errorf("an event that the library doesn't know: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if last == nil || text.String() != last.OutputText() {
		t.Fatalf("the pieces are %q, after %q", text.String(), types)
	}
	return types, last
}

func responsesCreate(t *testing.T, client *openai.Client) {
	got := sdkCreate(t, client, sdkRespond(capital))
	if got.OutputText() != paris || got.Status != responses.ResponseStatusCompleted || got.Output[0].Type != "reasoning" {
		t.Errorf("%s", got.RawJSON())
	}
	if u := got.Usage; u.InputTokens < 1 || u.TotalTokens != u.InputTokens+u.OutputTokens || u.OutputTokensDetails.ReasoningTokens < 1 {
		t.Errorf("usage %s", u.RawJSON())
	}
}

func responsesStream(t *testing.T, client *openai.Client) {
	types, last := sdkEvents(t, client, sdkRespond(capital))
	if last.OutputText() != paris || types[0] != "response.created" || !slices.Contains(types, "response.reasoning_text.delta") {
		t.Errorf("%q, %q", last.OutputText(), types)
	}
}

func responsesFunction(t *testing.T, client *openai.Client) {
	request := sdkRespond(useEchoTool)
	request.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
		Name: "echo", Strict: openai.Bool(false), Parameters: map[string]any{
			"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}, "required": []string{"message"},
		},
	}}}
	_, streamed := sdkEvents(t, client, request)
	for name, first := range map[string]*responses.Response{"in one piece": sdkCreate(t, client, request), "streamed": streamed} {
		call := first.Output[len(first.Output)-1]
		if call.Type != "function_call" || gjson.Get(call.Arguments.OfString, "message").Str != "hello world" {
			t.Fatalf("%s: %s", name, first.RawJSON())
		}
		result := responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
			CallID: openai.String(call.CallID),
			Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(redRiver)},
		}}
		byID := request
		byID.PreviousResponseID = openai.String(first.ID)
		byID.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{result}}
		items := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(useEchoTool, responses.EasyInputMessageRoleUser)}
		for _, item := range first.Output {
			items = append(items, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(item.RawJSON())))
		}
		resent := request
		resent.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: append(items, result)}
		for way, next := range map[string]responses.ResponseNewParams{"by id": byID, "by items": resent} {
			if text := sdkCreate(t, client, next).OutputText(); text != returned+redRiver {
				t.Errorf("%s, %s: %q", name, way, text)
			}
		}
	}
}

func responsesStructured(t *testing.T, client *openai.Client) {
	request := sdkRespond(capital)
	request.MaxOutputTokens = openai.Int(400)
	request.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{
		Name: "city", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "required": []string{"city"}, "additionalProperties": false,
			"properties": map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Paris", "Rome"}}},
		},
	}
	_, streamed := sdkEvents(t, client, request)
	for _, got := range []*responses.Response{sdkCreate(t, client, request), streamed} {
		if city := gjson.Get(got.OutputText(), "city").Str; city != "Paris" && city != "Rome" {
			t.Errorf("%s", got.RawJSON())
		}
	}
}

func responsesStored(t *testing.T, client *openai.Client) {
	first := sdkCreate(t, client, sdkRespond("My name is Ada."))
	next := sdkRespond(whoAmI)
	next.PreviousResponseID = openai.String(first.ID)
	if text := sdkCreate(t, client, next).OutputText(); text != "Your name is Ada." {
		t.Errorf("%q", text)
	}
	got, err := client.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{})
	if err != nil || got.OutputText() != first.OutputText() {
		t.Errorf("%v, %v", got, err)
	}
	var input []string
	pages := client.Responses.InputItems.ListAutoPaging(t.Context(), first.ID, responses.InputItemListParams{Limit: openai.Int(1)})
	for pages.Next() {
		input = append(input, pages.Current().AsMessage().Content[0].Text)
	}
	if err := pages.Err(); err != nil || !slices.Equal(input, []string{"My name is Ada."}) {
		t.Errorf("%q, %v", input, err)
	}
	if err := client.Responses.Delete(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	_, err = client.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{})
	wantSDKError(t, err, http.StatusNotFound, "", "")
}

func responsesBackground(t *testing.T, client *openai.Client) {
	request := sdkRespond(capital)
	request.Background = openai.Bool(true)
	id := sdkCreate(t, client, request).ID
	var got *responses.Response
	harness.Eventually(t, harness.Patience, "it has ended", func() (isOver bool) {
		var err error
		if got, err = client.Responses.Get(t.Context(), id, responses.ResponseGetParams{}); err != nil {
			t.Fatal(err)
		}
		return got.Status != responses.ResponseStatusQueued && got.Status != responses.ResponseStatusInProgress
	})
	if got.OutputText() != paris {
		t.Errorf("%s", got.RawJSON())
	}
	stream := client.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{StartingAfter: openai.Int(2)})
	defer func() { _ = stream.Close() }()
	number, last := int64(2), ""
	for stream.Next() {
		if number++; stream.Current().SequenceNumber != number {
			t.Errorf("event %d has the number %d", number, stream.Current().SequenceNumber)
		}
		last = stream.Current().Type
	}
	if err := stream.Err(); err != nil || last != "response.completed" {
		t.Errorf("%q, %v", last, err)
	}

	request.MaxOutputTokens = openai.Int(30_000)
	endless := sdkCreateEndless(t, client, request)
	if cancelled, err := client.Responses.Cancel(t.Context(), endless); err != nil || cancelled.Status != responses.ResponseStatusCancelled {
		t.Errorf("%v, %v", cancelled, err)
	}
}

// sdkCreateEndless returns the id of a background response that doesn't end by itself.
func sdkCreateEndless(t *testing.T, client *openai.Client, request responses.ResponseNewParams) string {
	t.Helper()
	got, err := client.Responses.New(t.Context(), request, option.WithJSONSet("logit_bias", harness.RespondLong(1)["logit_bias"]))
	if err != nil {
		t.Fatal(err)
	}
	return got.ID
}

func responsesRemote(t *testing.T, client *openai.Client, url string) {
	request := sdkRespond(useEchoTool)
	request.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortNone}
	request.Tools = []responses.ToolUnionParam{{OfMcp: &responses.ToolMcpParam{
		ServerLabel: "everything", ServerURL: openai.String(url),
		AllowedTools:    responses.ToolMcpAllowedToolsUnionParam{OfMcpAllowedTools: []string{"echo"}},
		RequireApproval: responses.ToolMcpRequireApprovalUnionParam{OfMcpToolApprovalSetting: openai.String("never")},
	}}}
	types, streamed := sdkEvents(t, client, request)
	if !slices.Contains(types, "response.mcp_call.completed") || !slices.Contains(types, "response.mcp_list_tools.completed") {
		t.Errorf("%q", types)
	}
	for _, got := range []*responses.Response{sdkCreate(t, client, request), streamed} {
		list, call := got.Output[0].AsMcpListTools(), got.Output[1].AsMcpCall()
		if len(list.Tools) != 1 || call.Name != "echo" || call.Output != "Echo: hello world" || got.OutputText() != returned+"Echo: hello world" {
			t.Errorf("%s", got.RawJSON())
		}
	}
}

func responsesCompact(t *testing.T, client *openai.Client) {
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("My name is Ada.", responses.EasyInputMessageRoleUser)}
	got, err := client.Responses.Compact(t.Context(), responses.ResponseCompactParams{
		Model: harness.Model, Input: responses.ResponseCompactParamsInputUnion{OfResponseInputItemArray: input},
	})
	if err != nil || len(got.Output) == 0 || got.Output[len(got.Output)-1].Type != "compaction" {
		t.Errorf("%v, %v", got, err)
	}
	count, err := client.Responses.InputTokens.Count(t.Context(), responses.InputTokenCountParams{
		Model: openai.String(harness.Model), Input: responses.InputTokenCountParamsInputUnion{OfString: openai.String(capital)},
	})
	if err != nil || count.InputTokens < 5 {
		t.Errorf("%v, %v", count, err)
	}
}

func responsesErrors(t *testing.T, client *openai.Client) {
	request := sdkRespond(capital)
	request.PreviousResponseID = openai.String("resp_" + strings.Repeat("0a", 24))
	_, err := client.Responses.New(t.Context(), request)
	wantSDKError(t, err, http.StatusBadRequest, "previous_response_not_found", "previous_response_id")
	request = sdkRespond(capital)
	request.Model = "nope"
	_, err = client.Responses.New(t.Context(), request)
	wantSDKError(t, err, http.StatusNotFound, "model_not_found", "model")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = client.Responses.New(ctx, sdkRespond(capital)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// wantSDKError checks an error of OpenAI's library. An empty code or parameter is null.
func wantSDKError(t *testing.T, err error, status int, code, parameter string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code || e.Param != parameter {
		t.Errorf("%v, want %d %s %s", err, status, code, parameter)
	}
}
