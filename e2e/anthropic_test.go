package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// claude is the name of a model of Anthropic's, an alias of the shipped model.
const claude = "claude-sonnet-5"

// withClaude gives the shipped model the names of Anthropic's models.
var withClaude = harness.Config{LM: []string{"model " + harness.Model + " {", "\talias claude-*", "}"}}

// TestAnthropicSDK runs Anthropic's own library for Go.
func TestAnthropicSDK(t *testing.T) { overEngines(t, anthropicSDK) }

func anthropicSDK(t *testing.T, e engine) {
	s := harness.Start(withOthers(e.home(t)), e.with(withClaude))
	checks := claudeChecks()
	checks["the model's name"] = func(t *testing.T, client *anthropic.Client) {
		if got := claudeAsk(t, client, claudeRequest(capital)); got.Model != harness.Model {
			t.Errorf("%s", got.RawJSON())
		}
	}
	if e.noBeginnings {
		delete(checks, "a beginning")
	}
	runClaude(t, s, checks)
}

// claudeChecks are all checks, by their names.
func claudeChecks() map[string]func(*testing.T, *anthropic.Client) {
	return map[string]func(*testing.T, *anthropic.Client){
		"text":            claudeText,
		"streaming":       claudeStreaming,
		"thinking":        claudeThinking,
		"tools":           claudeTools,
		"tools, streamed": claudeStreamedTools,
		"stop reasons":    claudeStops,
		"a beginning":     claudeBeginning,
		"counting":        claudeCount,
		"models":          claudeModels,
		"errors":          claudeErrors,
	}
}

// runClaude runs checks against a server, in any order.
func runClaude(t *testing.T, s *harness.Server, checks map[string]func(*testing.T, *anthropic.Client)) {
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(s.Base), option.WithAPIKey("none is needed"), option.WithMaxRetries(0))
	for name, check := range checks {
		t.Run(name, func(t *testing.T) { check(t, &client) })
	}
}

func claudeRequest(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: claude, MaxTokens: 200, Temperature: anthropic.Float(0),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func claudeAsk(t *testing.T, client *anthropic.Client, request anthropic.MessageNewParams) *anthropic.Message {
	t.Helper()
	got, err := client.Messages.New(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.ID, "msg_") || got.Role != "assistant" || !strings.HasSuffix(got.Model, harness.Model) { // a remote's name may precede it
		t.Fatalf("%s", got.RawJSON())
	}
	return got
}

// claudeStream accumulates a stream with the library's own accumulator.
func claudeStream(t *testing.T, client *anthropic.Client, request anthropic.MessageNewParams) *anthropic.Message {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), request)
	defer func() { _ = stream.Close() }()
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return &message
}

// wantText fails the test unless the answer is one text.
func wantText(t *testing.T, got *anthropic.Message, text string) {
	t.Helper()
	if len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != text || got.StopReason != anthropic.StopReasonEndTurn {
		t.Errorf("%s, want %q", got.RawJSON(), text)
	}
	if u := got.Usage; u.InputTokens+u.CacheReadInputTokens < 1 || u.OutputTokens < 1 || u.CacheCreationInputTokens != 0 {
		t.Errorf("usage %s", u.RawJSON())
	}
}

// claudeText sends a system prompt as Claude Code does: its first block changes with each request, which must not keep the
// engine from using its cache.
func claudeText(t *testing.T, client *anthropic.Client) {
	for i, hash := range []string{"11111", "22222"} {
		request := claudeRequest(capital)
		request.System = []anthropic.TextBlockParam{{Text: "x-anthropic-billing-header: cch=" + hash + ";"}, {Text: "You answer."}}
		got := claudeAsk(t, client, request)
		wantText(t, got, paris)
		if u := got.Usage; i > 0 && u.InputTokens > 1 {
			t.Errorf("the same prompt was read anew: %s", u.RawJSON())
		}
	}
}

func claudeStreaming(t *testing.T, client *anthropic.Client) {
	wantText(t, claudeStream(t, client, claudeRequest(capital)), paris)
}

func claudeThinking(t *testing.T, client *anthropic.Client) {
	request := claudeRequest(capital)
	request.Thinking = anthropic.ThinkingConfigParamOfEnabled(100)
	for _, got := range []*anthropic.Message{claudeAsk(t, client, request), claudeStream(t, client, request)} {
		if len(got.Content) != 2 || got.Content[0].Type != "thinking" || got.Content[0].Thinking == "" || got.Content[0].Signature == "" ||
			got.Content[1].Type != "text" || got.Content[1].Text != paris {
			t.Errorf("%s", got.RawJSON())
		}
	}
}

func withEchoTool(request anthropic.MessageNewParams) anthropic.MessageNewParams {
	request.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "echo", Description: anthropic.String("Says what it is told"),
		InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"message": map[string]any{"type": "string"}}, Required: []string{"message"}},
	}}}
	return request
}

// claudeGiveResult checks a call, and continues with its result.
func claudeGiveResult(t *testing.T, client *anthropic.Client, got *anthropic.Message, stream bool) {
	t.Helper()
	if got.StopReason != anthropic.StopReasonToolUse || len(got.Content) == 0 {
		t.Fatalf("%s", got.RawJSON())
	}
	call := got.Content[len(got.Content)-1]
	var input map[string]any
	if err := json.Unmarshal(call.Input, &input); err != nil {
		t.Fatalf("%v: %s", err, got.RawJSON())
	}
	if diff := cmp.Diff(map[string]any{"message": "hello world"}, input); diff != "" || call.Name != "echo" || call.ID == "" {
		t.Errorf("%s (-want +got):\n%s", got.RawJSON(), diff)
	}
	request := withEchoTool(claudeRequest(askEcho))
	request.Messages = append(request.Messages, got.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "red river", false)))
	ask := claudeAsk
	if stream {
		ask = claudeStream
	}
	wantText(t, ask(t, client, request), "The tool returned: red river")
}

func claudeTools(t *testing.T, client *anthropic.Client) {
	claudeGiveResult(t, client, claudeAsk(t, client, withEchoTool(claudeRequest(askEcho))), false)
}

// claudeStreamedTools lets the model think, too; the client returns the thinking with the result.
func claudeStreamedTools(t *testing.T, client *anthropic.Client) {
	request := withEchoTool(claudeRequest(askEcho))
	claudeGiveResult(t, client, claudeStream(t, client, request), true)
	request.Thinking = anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{Display: "omitted"}}
	got := claudeStream(t, client, request)
	if got.Content[0].Type != "thinking" || got.Content[0].Thinking != "" || got.Content[0].Signature == "" {
		t.Errorf("%s", got.RawJSON())
	}
	claudeGiveResult(t, client, got, true)
}

func claudeStops(t *testing.T, client *anthropic.Client) {
	cut := claudeRequest(capital)
	cut.MaxTokens = 3
	if got := claudeAsk(t, client, cut); got.StopReason != anthropic.StopReasonMaxTokens || got.Usage.OutputTokens != 3 {
		t.Errorf("%s", got.RawJSON())
	}
	stopped := claudeRequest(capital)
	stopped.StopSequences = []string{"Rome", "Paris"}
	for _, got := range []*anthropic.Message{claudeAsk(t, client, stopped), claudeStream(t, client, stopped)} {
		if got.StopReason != anthropic.StopReasonStopSequence || got.StopSequence != "Paris" || got.Content[0].Text != "The capital of France is " {
			t.Errorf("%s", got.RawJSON())
		}
	}
}

func claudeBeginning(t *testing.T, client *anthropic.Client) {
	begun := claudeRequest(capital)
	begun.Messages = append(begun.Messages, anthropic.NewAssistantMessage(anthropic.NewTextBlock("The capital of France is")))
	wantText(t, claudeAsk(t, client, begun), " Paris.")
}

func claudeCount(t *testing.T, client *anthropic.Client) {
	request := withEchoTool(claudeRequest(capital))
	count := anthropic.MessageCountTokensParams{Model: claude, Messages: request.Messages}
	plain, err := client.Messages.CountTokens(t.Context(), count)
	if err != nil {
		t.Fatal(err)
	}
	count.Tools = []anthropic.MessageCountTokensToolUnionParam{{OfTool: request.Tools[0].OfTool}}
	withTool, err := client.Messages.CountTokens(t.Context(), count)
	if err != nil {
		t.Fatal(err)
	}
	for counted, request := range map[int64]anthropic.MessageNewParams{plain.InputTokens: claudeRequest(capital), withTool.InputTokens: request} {
		if u := claudeAsk(t, client, request).Usage; u.InputTokens+u.CacheReadInputTokens != counted {
			t.Errorf("%d tokens were counted, but it took %s", counted, u.RawJSON())
		}
	}
}

func claudeModels(t *testing.T, client *anthropic.Client) {
	claudeAsk(t, client, claudeRequest(capital)) // so that the model is loaded and listed
	var ids []string
	pages := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{Limit: anthropic.Int(1)})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if err := pages.Err(); err != nil || !slices.Contains(ids, harness.Model) {
		t.Errorf("%q, %v", ids, err)
	}
	got, err := client.Models.Get(t.Context(), claude, anthropic.ModelGetParams{})
	if err != nil || got.ID != harness.Model || got.DisplayName == "" || got.CreatedAt.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

func claudeErrors(t *testing.T, client *anthropic.Client) {
	wrong := func(err error, status int, kind anthropic.ErrorType, says string) {
		t.Helper()
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != status || e.Type() != kind || e.RequestID == "" || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %d %s", err, status, kind)
		}
	}
	unknown := claudeRequest(capital)
	unknown.Model = "nope"
	_, err := client.Messages.New(t.Context(), unknown)
	wrong(err, 404, anthropic.ErrorTypeNotFoundError, `model: The model \"nope\" is not known`)
	hot := claudeRequest(capital)
	hot.Temperature = anthropic.Float(2)
	_, err = client.Messages.New(t.Context(), hot)
	wrong(err, 400, anthropic.ErrorTypeInvalidRequestError, "temperature")
	image := claudeRequest(capital)
	image.Messages[0].Content = append(image.Messages[0].Content, anthropic.NewImageBlockBase64("image/png", "iVBORw0KGgo="))
	_, err = client.Messages.New(t.Context(), image)
	wrong(err, 400, anthropic.ErrorTypeInvalidRequestError, "messages.0.content.1.source: is an image, and the model does not take images")
	stream := client.Messages.NewStreaming(t.Context(), claudeRequest(strings.Repeat("red river ", 10000)))
	defer func() { _ = stream.Close() }()
	for stream.Next() {
		t.Errorf("an event: %s", stream.Current().RawJSON())
	}
	wrong(stream.Err(), 400, anthropic.ErrorTypeInvalidRequestError, "prompt is too long: ")
}
