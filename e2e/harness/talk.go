package harness

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Talk is a conversation that a client carries on: with each turn it sends everything again.
type Talk struct {
	Model    string
	Messages []Fields
}

// Turn is what a turn of a conversation took.
type Turn struct {
	Took      time.Duration // to the end of the answer
	Prompt    int           // its tokens
	Processed int           // those of the prompt that the engine didn't have
	Text      string        // of the answer
}

// TurnTokens is the length of the answers of random models, which never end them.
const TurnTokens = 8

// longPrompt is the deadline for a turn: on a busy machine, a slow model processes a long prompt for minutes.
const longPrompt = 20 * time.Minute

// NewTalk begins a conversation with a system prompt.
func NewTalk(model, system string) *Talk {
	return &Talk{model, []Fields{{"role": "system", "content": system}}}
}

// Words returns a text of about the given number of tokens, as the shipped model's tokenizer counts them.
func Words(seed uint64, tokens int) string {
	const tokensPerWord = 1.64
	vocabulary := strings.Fields("The tool returns a name and a number, so that the user can count to thirty and say hello to the assistant again")
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	text := make([]string, int(float64(tokens)/tokensPerWord))
	for i := range text {
		text[i] = vocabulary[random.IntN(len(vocabulary))]
	}
	return strings.Join(text, " ")
}

// Fork returns a conversation with the same beginning.
func (k *Talk) Fork() *Talk { return &Talk{k.Model, slices.Clone(k.Messages)} }

// Say takes a turn, at temperature 0.
func (k *Talk) Say(s *Server, text string) Turn {
	s.T.Helper()
	return k.SayWith(s, Fields{}, text)
}

// SayWith is Say with further fields of the request.
func (k *Talk) SayWith(s *Server, fields Fields, text string) Turn {
	s.T.Helper()
	k.Messages = append(k.Messages, Fields{"role": "user", "content": text})
	begin := time.Now()
	request := fields.With("model", k.Model).With("temperature", 0).With("max_tokens", TurnTokens).With("messages", k.Messages)
	reply, err := s.tryWithin(s.T.Context(), longPrompt, http.MethodPost, ChatPath, s.reader(request))
	if err != nil {
		s.T.Fatalf("a prompt of %s: %v", k.Model, err)
	}
	reply.Want(s.T, http.StatusOK)
	t := Turn{Took: time.Since(begin), Prompt: int(reply.Get("usage.prompt_tokens").Int()), Text: reply.Get("choices.0.message.content").Str}
	t.Processed = t.Prompt - int(reply.Get("usage.prompt_tokens_details.cached_tokens").Int())
	k.Messages = append(k.Messages, Fields{"role": "assistant", "content": t.Text})
	return t
}
