package fakemlx

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// Backend is a real llama-server that makes the answers of a fake. Each process of the fake starts one of its own as it loads its model, and
// it ends with the process.
type Backend struct {
	// Command is the llama-server's executable.
	Command string
	// Model is the path of its GGUF file, whatever model the fake is asked to load.
	Model string
	// Args are further arguments.
	Args []string
}

// backend is a running llama-server.
type backend struct {
	url   string
	input io.Closer // it ends when this closes, as it does when the process ends
}

// backendSlots is how many requests a backend can answer at a time.
const backendSlots = 4

// start starts the llama-server and waits until it is ready.
func (b *Backend) start() (*backend, error) {
	args := append([]string{
		"-m", b.Model, "--host", "127.0.0.1", "--port", "0", "-c", "32768", "-np", strconv.Itoa(backendSlots), "--kv-unified",
	}, b.Args...)
	cmd := exec.Command(b.Command, args...)
	cmd.Env = append(os.Environ(), "LLAMA_SERVER_ROUTER_PORT=1") // so it ends when its input does
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the backend: %w", err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() {
				_, _ = io.Copy(io.Discard, log)
				_ = cmd.Wait()
			}()
			return &backend{url: strings.TrimSpace(url), input: input}, nil
		}
	}
	return nil, fmt.Errorf("the backend didn't start: %w\n%s", cmd.Wait(), said.String())
}

// renamed are fields that a llama-server knows under other names.
var renamed = map[string]string{"repetition_penalty": "repeat_penalty", "repetition_context_size": "repeat_last_n"}

// passed are the fields that it gets as they are.
var passed = []string{
	"messages", "prompt", "tools", "chat_template_kwargs", "stop", "seed", "logit_bias",
	"top_p", "min_p", "presence_penalty", "frequency_penalty", "xtc_probability", "xtc_threshold",
}

// translate makes the llama-server's request of one of the real server's.
func (g *generation) translate() ([]byte, error) {
	body := map[string]any{
		"stream": true, "stream_options": map[string]any{"include_usage": true}, "return_progress": true, "parallel_tool_calls": true,
		"max_tokens": max(1, g.ask.limit), "temperature": g.ask.temp, "top_k": g.ask.topK, "top_p": g.args.topP, "min_p": g.args.minP,
	}
	if len(g.args.templateArgs) > 0 {
		body["chat_template_kwargs"] = g.args.templateArgs
	}
	for _, name := range passed {
		if v, ok := g.ask.body[name]; ok && v != nil {
			body[name] = v
		}
	}
	for name, theirs := range renamed {
		if v, ok := g.ask.body[name]; ok && number(v) != 0 {
			body[theirs] = v
		}
	}
	if g.ask.lost {
		for _, name := range []string{"logit_bias", "presence_penalty", "frequency_penalty", "repeat_penalty"} {
			delete(body, name)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the backend's request: %w", err)
	}
	return text, nil
}

// backendChunk is what is read of a chunk of a llama-server's stream.
type backendChunk struct {
	Choices []struct {
		Text   string  `json:"text"`
		Finish *string `json:"finish_reason"`
		Delta  struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			Calls     []struct {
				Index    int `json:"index"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Progress *struct{ Total, Cache, Processed int } `json:"prompt_progress"`
	Usage    *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string
		Tokens  int `json:"n_prompt_tokens"` // where that is too many
	} `json:"error"`
}

// relay answers with what the backend says.
func (g *generation) relay(b *backend) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	body, err := g.translate()
	if err != nil {
		return err
	}
	path := "/v1/completions"
	if g.ask.chat {
		path = "/v1/chat/completions"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the backend: %w", err)
	}
	r.Close = true // the backend closes idle connections, possibly just when a request is sent
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return g.refuse(fmt.Errorf("asking the backend: %w", err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var chunk backendChunk
		if err := json.NewDecoder(answer.Body).Decode(&chunk); err != nil || chunk.Error == nil {
			return g.refuse(fmt.Errorf("the backend answered with status %d", answer.StatusCode))
		}
		if chunk.Error.Tokens > 0 {
			return g.overlong(chunk.Error.Tokens)
		}
		return g.refuse(errors.New(chunk.Error.Message))
	}
	relayed := relayed{generation: g}
	if prompt, ok := g.ask.prompt.(string); ok {
		_, relayed.whole = g.thread.cache.find([]string{prompt})
	}
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return raise("RuntimeError", "the backend's stream broke off: %v", err)
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			return relayed.end()
		}
		var chunk backendChunk
		if err := json.Unmarshal(data, &chunk); err != nil {
			return raise("RuntimeError", "the backend sent no JSON: %v", err)
		}
		if err := relayed.take(&chunk); err != nil {
			return err
		}
	}
}

// overlong answers a prompt that is longer than the backend's context. The real server has no such limit; this says nothing.
func (g *generation) overlong(tokens int) error {
	g.tokens = tokens
	if err := g.begin(); err != nil {
		return err
	}
	for _, at := range progressSteps(tokens, g.args.prefill) {
		if err := g.progress(at, tokens); err != nil {
			return err
		}
	}
	return g.finish("length")
}

// relayed is an answer of the backend on its way.
type relayed struct {
	*generation
	total, at int  // of the prompt's progress
	whole     bool // the prompt is all of an entry of the prompt cache
	gated     bool // the rule's gate and first delay were waited for
	read      bool // the prompt is
	spoken    int  // tokens
	calls     []fakekit.ToolCall
	handed    int // of the calls
	finish    string
	usage     int
}

// take translates a chunk.
func (r *relayed) take(c *backendChunk) error {
	if c.Error != nil {
		return r.fails(raise("RuntimeError", "%s", c.Error.Message))
	}
	if c.Progress != nil {
		if err := r.progressed(c.Progress.Total, c.Progress.Cache, c.Progress.Processed); err != nil {
			return err
		}
	}
	if c.Usage != nil {
		r.usage = c.Usage.Completion
	}
	for _, choice := range c.Choices {
		t := token{thought: choice.Delta.Reasoning, text: choice.Delta.Content + choice.Text}
		for _, part := range choice.Delta.Calls {
			if err := r.hand(part.Index); err != nil {
				return err
			}
			if part.Index >= len(r.calls) {
				r.calls = append(r.calls, fakekit.ToolCall{})
			}
			call := &r.calls[len(r.calls)-1]
			call.Name += part.Function.Name
			call.Arguments += part.Function.Arguments
		}
		if t.thought != "" || t.text != "" || len(choice.Delta.Calls) > 0 {
			if err := r.say(&t); err != nil {
				return err
			}
		}
		if choice.Finish != nil {
			r.finish = *choice.Finish
		}
	}
	return nil
}

// progressed tells the progress of the prompt. Cached tokens don't count.
func (r *relayed) progressed(total, cached, processed int) error {
	if r.total == 0 {
		r.total = total - cached
		r.tokens, r.cached = total, cached
		if err := r.begin(); err != nil {
			return err
		}
		if r.whole {
			return r.fails(errWhole)
		}
	} else if err := r.wait("", r.rule.PromptDelay, false); err != nil {
		return err
	}
	if processed -= cached; processed == 0 && !r.alone {
		return nil
	}
	gated, was := r.gated, r.at
	r.at, r.gated = processed, true
	if processed == 0 {
		if err := r.progress(0, r.total); err != nil {
			return err
		}
	}
	for _, at := range progressSteps(r.total, r.args.prefill) { // the backend's are others
		if at <= was || at > processed {
			continue
		}
		if err := r.progress(at, r.total); err != nil {
			return err
		}
	}
	if gated {
		return nil
	}
	return r.wait(r.rule.Gate, r.rule.FirstDelay, false)
}

// say passes a token on, and runs the script's cues before it.
func (r *relayed) say(t *token) error {
	if !r.read {
		r.read = true
		if r.at < r.total {
			if err := r.progressed(r.tokens, r.cached, r.tokens); err != nil {
				return err
			}
		}
		if err := r.late(); err != nil {
			return err
		}
		if err := r.atLast(); err != nil {
			return err
		}
	}
	if err := r.cues(r.spoken); err != nil {
		return err
	}
	if r.spoken > 0 {
		if err := r.wait("", r.rule.Delay, false); err != nil {
			return err
		}
	}
	if r.spoken == 0 { // the real server takes it for one that the tokenizer has added
		t.text = strings.TrimPrefix(t.text, " ")
	}
	r.spoken++
	return r.token(t)
}

// hand passes on the calls before one, which are whole.
func (r *relayed) hand(before int) error {
	for ; r.handed < min(before, len(r.calls)); r.handed++ {
		if err := r.say(&token{call: &r.calls[r.handed]}); err != nil {
			return err
		}
	}
	return nil
}

// end passes on the end.
func (r *relayed) end() error {
	if r.finish != "length" {
		if err := r.hand(len(r.calls)); err != nil {
			return err
		}
	}
	if !r.read {
		if err := r.say(&token{}); err != nil {
			return err
		}
	}
	if err := r.cues(r.spoken); err != nil {
		return err
	}
	if prompt, ok := r.ask.prompt.(string); ok && r.finish == "length" {
		r.thread.cache.keep([]string{prompt + r.text.String()})
	}
	r.sent = r.usage
	return r.generation.finish(r.finish)
}
