package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestOpenAISDK runs OpenAI's own library for Go.
func TestOpenAISDK(t *testing.T) { overEngines(t, openAISDK) }

func openAISDK(t *testing.T, e engine) {
	s := harness.Start(withOthers(e.home(t)), e.with(harness.Config{}))
	checks := openAIChecks(e.first(" Paris."))
	if e.noSchemas {
		delete(checks, "structured output")
	}
	runOpenAI(t, s, checks)
}

// openAIChecks are the checks of all but responses, by their names. The model continues "The capital of France is" by a text of four tokens.
func openAIChecks(continued string) map[string]func(*testing.T, *openai.Client) {
	return map[string]func(*testing.T, *openai.Client){
		"chat":              sdkChat,
		"streaming":         sdkStreaming,
		"tools":             sdkTools,
		"tools, streamed":   sdkStreamedTools,
		"structured output": sdkStructuredOutput,
		"completions":       func(t *testing.T, client *openai.Client) { sdkCompletions(t, client, continued) },
		"embeddings":        sdkEmbeddings,
		"models":            sdkModels,
		"errors":            sdkErrors,
	}
}

// runOpenAI runs checks against a server, in any order.
func runOpenAI(t *testing.T, s *harness.Server, checks map[string]func(*testing.T, *openai.Client)) {
	client := openai.NewClient(option.WithBaseURL(s.Base+"/v1/"), option.WithAPIKey("none is needed"), option.WithMaxRetries(0))
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { check(t, &client) })
	}
}

func sdkRequest(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:       harness.Model,
		Temperature: openai.Float(0),
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

func sdkAsk(t *testing.T, client *openai.Client, request openai.ChatCompletionNewParams) *openai.ChatCompletion {
	t.Helper()
	got, err := client.Chat.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || !strings.HasPrefix(got.ID, "chatcmpl-") {
		t.Fatalf("%s", got.RawJSON())
	}
	return got
}

func sdkChat(t *testing.T, client *openai.Client) {
	got := sdkAsk(t, client, sdkRequest(capital))
	if got.Choices[0].Message.Content != paris || got.Choices[0].FinishReason != "stop" {
		t.Errorf("%s", got.RawJSON())
	}
	if u := got.Usage; u.PromptTokens < 1 || u.CompletionTokens < 1 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage %s", u.RawJSON())
	}
}

// sdkStream accumulates a stream with the library's own accumulator.
func sdkStream(t *testing.T, client *openai.Client, request openai.ChatCompletionNewParams) *openai.ChatCompletion {
	t.Helper()
	request.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), request)
	defer func() { _ = stream.Close() }()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if chunk := stream.Current(); !all.AddChunk(chunk) {
			t.Fatalf("a chunk that doesn't fit: %s", chunk.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return &all.ChatCompletion
}

func sdkStreaming(t *testing.T, client *openai.Client) {
	got := sdkStream(t, client, sdkRequest(capital))
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != paris || got.Choices[0].FinishReason != "stop" || got.Usage.CompletionTokens < 1 {
		t.Errorf("%+v", got)
	}
}

func withEcho(request openai.ChatCompletionNewParams) openai.ChatCompletionNewParams {
	request.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name:        "echo",
		Description: openai.String("Says what it is told"),
		Parameters: shared.FunctionParameters{
			"type": "object", "properties": map[string]any{"message": map[string]any{"type": "string"}}, "required": []string{"message"},
		},
	})}
	return request
}

const askEcho = "Use echo with message hello world"

// sdkGiveResult checks a call, sends its result to the model, and checks the answer.
func sdkGiveResult(t *testing.T, client *openai.Client, got *openai.ChatCompletion) {
	t.Helper()
	message := got.Choices[0].Message
	if got.Choices[0].FinishReason != "tool_calls" || len(message.ToolCalls) != 1 {
		t.Fatalf("no call: %+v", got)
	}
	call := message.ToolCalls[0]
	var arguments map[string]any
	if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"message": "hello world"}, arguments); diff != "" || call.Function.Name != "echo" || call.ID == "" {
		t.Errorf("call %+v (-want +got):\n%s", call, diff)
	}
	request := withEcho(sdkRequest(askEcho))
	request.Messages = append(request.Messages, message.ToParam(), openai.ToolMessage("red river", call.ID))
	if answer := sdkAsk(t, client, request).Choices[0]; answer.Message.Content != "The tool returned: red river" {
		t.Errorf("%s", answer.RawJSON())
	}
}

func sdkTools(t *testing.T, client *openai.Client) {
	sdkGiveResult(t, client, sdkAsk(t, client, withEcho(sdkRequest(askEcho))))
}

func sdkStreamedTools(t *testing.T, client *openai.Client) {
	sdkGiveResult(t, client, sdkStream(t, client, withEcho(sdkRequest(askEcho))))
}

func sdkStructuredOutput(t *testing.T, client *openai.Client) {
	request := sdkRequest(capital)
	request.MaxTokens = openai.Int(400)
	request.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "required": []string{"city"}, "additionalProperties": false,
			"properties": map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Paris", "Rome"}}},
		}},
	}}
	content := sdkAsk(t, client, request).Choices[0].Message.Content
	var got struct{ City string }
	if err := json.Unmarshal([]byte(content), &got); err != nil || !slices.Contains([]string{"Paris", "Rome"}, got.City) {
		t.Errorf("%q: %v", content, err)
	}
}

func sdkCompletions(t *testing.T, client *openai.Client, continued string) {
	request := openai.CompletionNewParams{
		Model:       harness.Model,
		Prompt:      openai.CompletionNewParamsPromptUnion{OfString: openai.String("The capital of France is")},
		Temperature: openai.Float(0),
		MaxTokens:   openai.Int(4),
		Echo:        openai.Bool(true),
	}
	got, err := client.Completions.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Text != "The capital of France is"+continued || got.Choices[0].FinishReason != "length" || got.Usage.CompletionTokens != 4 {
		t.Errorf("%s", got.RawJSON())
	}
	stream := client.Completions.NewStreaming(t.Context(), request)
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	for stream.Next() {
		text.WriteString(stream.Current().Choices[0].Text)
	}
	if err := stream.Err(); err != nil || text.String() != got.Choices[0].Text {
		t.Errorf("streamed: %q, %v", text.String(), err)
	}
}

func sdkEmbeddings(t *testing.T, client *openai.Client) {
	got, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: embedModel,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"The food was delicious.", "red river"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Usage.PromptTokens < 4 || got.Usage.TotalTokens != got.Usage.PromptTokens {
		t.Errorf("%d vectors, usage %s", len(got.Data), got.Usage.RawJSON())
	}
	for i, d := range got.Data {
		sum := 0.0
		for _, x := range d.Embedding {
			sum += x * x
		}
		if math.Abs(sum-1) > 1e-4 || d.Index != int64(i) {
			t.Errorf("vector %d has the index %d and the length %v", i, d.Index, math.Sqrt(sum))
		}
	}
}

func sdkModels(t *testing.T, client *openai.Client) {
	sdkAsk(t, client, sdkRequest(capital)) // so that the model is loaded and listed
	var ids []string
	pages := client.Models.ListAutoPaging(t.Context())
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if err := pages.Err(); err != nil || !slices.Contains(ids, harness.Model) {
		t.Errorf("%q, %v", ids, err)
	}
	got, err := client.Models.Get(t.Context(), harness.Model) // the id contains a slash
	if err != nil || got.ID != harness.Model {
		t.Errorf("%+v, %v", got, err)
	}
}

func sdkErrors(t *testing.T, client *openai.Client) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrong := func(err error, status int, code, param string) {
		t.Helper()
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != status || e.Code != code || e.Param != param {
			t.Errorf("%v, want %d %s %s", err, status, code, param)
		}
	}
	request := sdkRequest(capital)
	request.Model = "nope"
	_, err := client.Chat.Completions.New(ctx, request)
	wrong(err, 404, "model_not_found", "model")
	_, err = client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: embedModel, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(strings.Repeat("red river ", 1000))},
	})
	wrong(err, 400, "context_length_exceeded", "input")
	stream := client.Chat.Completions.NewStreaming(ctx, sdkRequest(strings.Repeat("red river ", 10000)))
	defer func() { _ = stream.Close() }()
	for stream.Next() {
		t.Errorf("a chunk: %s", stream.Current().RawJSON())
	}
	wrong(stream.Err(), 400, "context_length_exceeded", "messages")
}
