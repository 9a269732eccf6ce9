package harness

import (
	"net/http"

	"github.com/tidwall/gjson"
)

// Answer is the result of a chat, streamed or in one piece.
type Answer struct {
	Model     string
	Content   string
	Reasoning string
	Finish    string
	Calls     []Call
	Usage     Usage
}

// Call is a tool call of the model.
type Call struct{ Name, Arguments string }

// Usage is the number of tokens that a chat used.
type Usage struct{ Prompt, Completion, Total int64 }

// Chat requests an answer in one piece.
func (s *Server) Chat(request Fields) Answer {
	s.T.Helper()
	return s.Post(ChatPath, request).Answer(s)
}

// Answer reads a chat completion. Any other reply fails the test.
func (r Reply) Answer(s *Server) Answer {
	s.T.Helper()
	r.Want(s.T, http.StatusOK)
	if object := r.Get("object").Str; object != "chat.completion" {
		s.T.Fatalf("the object is %q: %s", object, r.Body)
	}
	var a Answer
	a.Model = r.Get("model").Str
	a.add(r.Get("choices.0"), "message")
	a.Usage = usageOf(r.Get("usage"))
	return a
}

// add adds a choice's message, or its next delta.
func (a *Answer) add(choice gjson.Result, name string) {
	said := choice.Get(name)
	a.Content += said.Get("content").Str
	a.Reasoning += said.Get("reasoning").Str
	if finish := choice.Get("finish_reason").Str; finish != "" {
		a.Finish = finish
	}
	for i, call := range said.Get("tool_calls").Array() {
		if index := call.Get("index"); index.Exists() {
			i = int(index.Int())
		}
		for len(a.Calls) <= i {
			a.Calls = append(a.Calls, Call{})
		}
		a.Calls[i].Name += call.Get("function.name").Str
		a.Calls[i].Arguments += call.Get("function.arguments").Str
	}
}

func usageOf(u gjson.Result) Usage {
	return Usage{u.Get("prompt_tokens").Int(), u.Get("completion_tokens").Int(), u.Get("total_tokens").Int()}
}
