package fakemlx

import (
	"encoding/json"
	"math"
	"math/big"
)

// ask is what a request asks for, once its parameters are checked.
type ask struct {
	body     map[string]any
	chat     bool
	stream   bool
	model    string // as asked for
	limit    int
	temp     float64
	topK     int
	bias     map[string]float64 // of logit_bias, by token
	seeded   bool
	badSeed  bool
	lone     bool // there is a surrogate without its other half, which is no text
	logprobs bool
	// processed says that there is a logits processor: a bias or a penalty. Lost says that the batch forgets it after the first token.
	processed, lost bool

	messages []any
	prompt   any
	rounds   int  // of calls since the last user message
	thinking bool // not switched off
}

// parseAsk checks a body's parameters. An error closes the connection.
func (a *args) parseAsk(chat bool, body map[string]any) (*ask, error) {
	q := &ask{body: body, chat: chat, model: "default_model", limit: a.maxTokens, temp: a.temp, topK: a.topK, thinking: true, bias: map[string]float64{}}
	limited := body["max_completion_tokens"]
	for _, p := range parameters {
		v, given := body[p.field]
		if p.name == "max_tokens" && limited != nil {
			v, given = limited, true
		}
		if !given {
			continue
		}
		if err := p.check(v); err != nil {
			return nil, err
		}
		q.take(p.name, v)
	}
	bias, _ := body["logit_bias"].(map[string]any)
	for key, value := range bias {
		if _, ok := new(big.Int).SetString(key, 10); !ok || !isOf(value, "int float") {
			return nil, raise("ValueError", "logit_bias must be a dict of int to float")
		}
		q.bias[key] = number(value)
	}
	if seed, ok := body["seed"].(json.Number); ok {
		n, ok := new(big.Int).SetString(seed.String(), 10)
		q.badSeed = ok && (n.Sign() < 0 || n.BitLen() > 64)
	}
	for _, name := range []string{"repetition_penalty", "presence_penalty", "frequency_penalty"} {
		q.processed = q.processed || number(body[name]) != 0
	}
	q.processed = q.processed || len(q.bias) > 0
	return q, q.takePrompt()
}

// take keeps the value of a parameter.
func (q *ask) take(name string, v any) {
	switch name {
	case "stream":
		q.stream = v.(bool)
	case "max_tokens":
		q.limit = int(min(number(v), math.MaxInt32))
	case "temperature":
		q.temp = number(v)
	case "top_k":
		q.topK = int(min(number(v), math.MaxInt32))
	case "requested_model":
		q.model = v.(string)
	case "seed":
		q.seeded = v != nil
	case "logprobs":
		q.logprobs = v.(bool)
	}
}

// takePrompt takes what there is to be answered, unchecked, since the real server looks into it only when the request is served.
func (q *ask) takePrompt() error {
	var given bool
	if !q.chat {
		if q.prompt, given = q.body["prompt"]; !given {
			return raise("AssertionError", "Request did not contain a prompt")
		}
		return nil
	}
	messages, given := q.body["messages"]
	if !given {
		return raise("AssertionError", "Request did not contain messages")
	}
	q.messages, _ = messages.([]any)
	q.prompt = messages
	if options, ok := q.body["chat_template_kwargs"].(map[string]any); ok && options["enable_thinking"] == false {
		q.thinking = false
	}
	for _, m := range q.messages {
		message, _ := m.(map[string]any)
		switch message["role"] {
		case "user":
			q.rounds = 0
		case "assistant":
			if calls, _ := message["tool_calls"].([]any); len(calls) > 0 {
				q.rounds++
			}
		}
	}
	return nil
}

// usage is what stream_options says of usage. An error ends the stream where the usage would be.
func (q *ask) usage() (bool, error) {
	options, given := q.body["stream_options"]
	if !given || options == nil {
		return false, nil
	}
	object, ok := options.(map[string]any)
	if !ok {
		return false, raise("TypeError", "'%s' object is not subscriptable", pythonType(options))
	}
	include, ok := object["include_usage"]
	if !ok {
		return false, raise("KeyError", "'include_usage'")
	}
	return include != nil && include != false && include != "", nil
}
