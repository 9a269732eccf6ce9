// Command ollamaclient runs Ollama's own client for Go against a server: ollamaclient BASE_URL [remote]. It says what it has seen, a line for each
// check, and ends with a status that isn't 0 if a check fails. The server has a hub with acme/Tiny-GGUF, unless its models are on a remote. It is
// a module of its own, since the client belongs to a large one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

const (
	model    = "tinychat:latest"
	question = "What is the capital of France?"
	answer   = "The capital of France is Paris."
)

var (
	options  = map[string]any{"temperature": 0}
	isRemote bool // the models are on a remote
)

type check struct {
	name string
	run  func(context.Context, *api.Client) error
}

// checks are what is checked, in order.
var checks = []check{
	{"heartbeat, as the command ollama begins", func(ctx context.Context, c *api.Client) error { return c.Heartbeat(ctx) }},
	{"version", version},
	{"chat, streamed and whole", chat},
	{"generate", generate},
	{"tools", tools},
	{"structured output", format},
	{"thinking", thinking},
	{"embeddings", embeddings},
	{"list, show and ps", models},
	{"errors", failures},
	{"abort", abort},
}

// ownChecks are those of a server that loads and keeps its models itself.
var ownChecks = []check{
	{"load and unload, as the commands run and stop do", keepAlive},
	{"pull, copy, create and delete", manage},
}

func main() {
	base, err := url.Parse(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	client := api.NewClient(base, http.DefaultClient)
	if isRemote = len(os.Args) > 2; !isRemote {
		checks = append(checks, ownChecks...)
	}
	failed := 0
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := check.run(ctx, client); err != nil {
			failed++
			fmt.Printf("failed: %s: %v\n", check.name, err)
		} else {
			fmt.Printf("ok: %s\n", check.name)
		}
		cancel()
	}
	fmt.Printf("%d checks, %d failed\n", len(checks), failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func expect(ok bool, what string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(what, args...)
}

func version(ctx context.Context, c *api.Client) error {
	v, err := c.Version(ctx)
	return errors.Join(err, expect(strings.Count(v, ".") == 2, "version %q", v))
}

// say asks one thing, and returns the answer's text, the calls, the thinking and the last part.
func say(ctx context.Context, c *api.Client, r *api.ChatRequest) (text, thought string, calls []api.ToolCall, last api.ChatResponse, err error) {
	r.Model, r.Options = model, options
	err = c.Chat(ctx, r, func(part api.ChatResponse) error {
		text += part.Message.Content
		thought += part.Message.Thinking
		calls = append(calls, part.Message.ToolCalls...)
		last = part
		return nil
	})
	return text, thought, calls, last, err
}

func user(text string) []api.Message { return []api.Message{{Role: "user", Content: text}} }

func chat(ctx context.Context, c *api.Client) error {
	for _, stream := range []bool{true, false} {
		text, _, _, last, err := say(ctx, c, &api.ChatRequest{Messages: user(question), Stream: &stream})
		ok := text == answer && last.Done && last.DoneReason == "stop" && last.EvalCount > 0 && last.PromptEvalCount > 0 && last.TotalDuration > 0 && last.EvalDuration > 0
		if err := errors.Join(err, expect(ok, "%q %+v", text, last)); err != nil {
			return err
		}
	}
	return nil
}

func generate(ctx context.Context, c *api.Client) error {
	text := ""
	err := c.Generate(ctx, &api.GenerateRequest{Model: model, Prompt: question, Options: options}, func(part api.GenerateResponse) error {
		text += part.Response
		return nil
	})
	return errors.Join(err, expect(text == answer, "%q", text), remember(ctx, c))
}

// remember continues a conversation by the context of an answer.
func remember(ctx context.Context, c *api.Client) error {
	var memory []int
	var said string
	for _, prompt := range []string{"My name is Ada.", "What is my name?"} {
		said = ""
		err := c.Generate(ctx, &api.GenerateRequest{Model: model, Prompt: prompt, Context: memory, Options: options}, func(part api.GenerateResponse) error {
			said += part.Response
			memory = part.Context
			return nil
		})
		if err != nil {
			return err
		}
	}
	return expect(strings.Contains(said, "Ada"), "%q", said)
}

// echo is a tool.
func echo() api.Tools {
	var all api.Tools
	const text = `[{"type":"function","function":{"name":"echo","description":"Says what it is told","parameters":{"type":"object","required":["message"],"properties":{"message":{"type":"string"}}}}}]`
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		panic(err)
	}
	return all
}

const useEcho = "Use echo with message hello world"

func tools(ctx context.Context, c *api.Client) error {
	messages := user(useEcho)
	_, _, calls, last, err := say(ctx, c, &api.ChatRequest{Messages: messages, Tools: echo()})
	if err != nil || len(calls) != 1 || calls[0].Function.Arguments.String() != `{"message":"hello world"}` {
		return errors.Join(err, fmt.Errorf("%+v %+v", calls, last))
	}
	messages = append(messages, api.Message{Role: "assistant", ToolCalls: calls}, api.Message{Role: "tool", Content: "red river", ToolName: "echo", ToolCallID: calls[0].ID})
	text, _, _, _, err := say(ctx, c, &api.ChatRequest{Messages: messages, Tools: echo()})
	return errors.Join(err, expect(strings.Contains(text, "red river"), "%q", text))
}

func format(ctx context.Context, c *api.Client) error {
	text, _, _, _, err := say(ctx, c, &api.ChatRequest{
		Messages: user(question),
		Format:   json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","enum":["Paris","Rome"]}},"required":["city"],"additionalProperties":false}`),
	})
	var got struct{ City string }
	return errors.Join(err, json.Unmarshal([]byte(text), &got), expect(got.City == "Paris" || got.City == "Rome", "%q", text))
}

func thinking(ctx context.Context, c *api.Client) error {
	for think, thinks := range map[any]bool{true: true, false: false, "low": true} {
		_, thought, _, _, err := say(ctx, c, &api.ChatRequest{Messages: user(useEcho), Tools: echo(), Think: &api.ThinkValue{Value: think}})
		if err := errors.Join(err, expect((thought != "") == thinks, "think %v: %q", think, thought)); err != nil {
			return err
		}
	}
	return nil
}

func embeddings(ctx context.Context, c *api.Client) error {
	got, err := c.Embed(ctx, &api.EmbedRequest{Model: "tinyembed", Input: []string{"red", "blue"}, Dimensions: 8})
	if err != nil || len(got.Embeddings) != 2 || len(got.Embeddings[0]) != 8 || got.PromptEvalCount == 0 {
		return errors.Join(err, fmt.Errorf("%+v", got))
	}
	one, err := c.Embeddings(ctx, &api.EmbeddingRequest{Model: "tinyembed", Prompt: "red"})
	return errors.Join(err, expect(one != nil && len(one.Embedding) > 8, "%+v", one))
}

func models(ctx context.Context, c *api.Client) error {
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	names := ""
	for _, m := range list.Models {
		names += m.Name + " "
	}
	shown, err := c.Show(ctx, &api.ShowRequest{Model: model})
	if err != nil {
		return err
	}
	running, err := c.ListRunning(ctx)
	if err != nil {
		return err
	}
	return errors.Join(
		expect(strings.Contains(names, "lmcaddy/tinychat:latest"), "%s", names),
		expect(isRemote || fmt.Sprint(shown.Capabilities) == "[completion tools thinking]" && shown.ModelInfo["general.architecture"] == "llama" && shown.Details.Format == "gguf", "%+v", shown),
		expect(len(running.Models) > 0 && (isRemote || running.Models[0].ExpiresAt.After(time.Now())), "%+v", running),
	)
}

func keepAlive(ctx context.Context, c *api.Client) error {
	reasons := ""
	for _, d := range []time.Duration{5 * time.Minute, -1, 0} {
		err := c.Generate(ctx, &api.GenerateRequest{Model: model, KeepAlive: &api.Duration{Duration: d}}, func(part api.GenerateResponse) error {
			reasons += part.DoneReason + " "
			return nil
		})
		if err != nil {
			return err
		}
	}
	running, err := c.ListRunning(ctx)
	if err != nil {
		return err
	}
	for _, m := range running.Models {
		if m.Name == "lmcaddy/tinychat:latest" {
			return fmt.Errorf("it is still loaded: %+v", m)
		}
	}
	return expect(reasons == "load load unload ", "%s", reasons)
}

func manage(ctx context.Context, c *api.Client) error {
	const pulled = "hf.co/acme/Tiny-GGUF:Q8_0"
	var statuses []string
	progress := func(p api.ProgressResponse) error {
		statuses = append(statuses, p.Status)
		return nil
	}
	if err := c.Pull(ctx, &api.PullRequest{Model: pulled}, progress); err != nil || statuses[len(statuses)-1] != "success" {
		return errors.Join(err, fmt.Errorf("%q", statuses))
	}
	if err := c.Copy(ctx, &api.CopyRequest{Source: pulled, Destination: "mine"}); err != nil {
		return err
	}
	if err := c.Create(ctx, &api.CreateRequest{Model: "brief", From: "mine", System: "You are brief.", Parameters: map[string]any{"temperature": 0, "stop": []string{"END"}}}, progress); err != nil {
		return err
	}
	shown, err := c.Show(ctx, &api.ShowRequest{Model: "brief"})
	if err != nil || shown.System != "You are brief." || !strings.Contains(shown.Parameters, "temperature") {
		return errors.Join(err, fmt.Errorf("%+v", shown))
	}
	for _, name := range []string{"mine", "brief", pulled} {
		if err := c.Delete(ctx, &api.DeleteRequest{Model: name}); err != nil {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	err = c.Delete(ctx, &api.DeleteRequest{Model: pulled})
	return expect(isStatus(err, http.StatusNotFound), "%v", err)
}

func isStatus(err error, status int) bool {
	var e api.StatusError
	return errors.As(err, &e) && e.StatusCode == status && e.ErrorMessage != ""
}

func failures(ctx context.Context, c *api.Client) error {
	_, unknown := c.Show(ctx, &api.ShowRequest{Model: "nothing"})
	embeds := c.Chat(ctx, &api.ChatRequest{Model: "tinyembed", Messages: user("hi")}, func(api.ChatResponse) error { return nil })
	blob := c.CreateBlob(ctx, "sha256:00", strings.NewReader("GGUF"))
	return errors.Join(
		expect(isStatus(unknown, 404) && strings.Contains(unknown.Error(), "not found"), "%v", unknown),
		expect(isStatus(embeds, 400) && strings.Contains(embeds.Error(), "does not support chat"), "%v", embeds),
		expect(isStatus(blob, 400), "%v", blob),
	)
}

func abort(ctx context.Context, c *api.Client) error {
	enough := errors.New("enough")
	_, _, _, _, err := say(ctx, c, &api.ChatRequest{Messages: user("Count to thirty")})
	if err != nil {
		return err
	}
	parts := 0
	err = c.Chat(ctx, &api.ChatRequest{Model: model, Messages: user("Count to thirty")}, func(api.ChatResponse) error {
		if parts++; parts == 2 {
			return enough
		}
		return nil
	})
	return expect(errors.Is(err, enough), "%v", err)
}
