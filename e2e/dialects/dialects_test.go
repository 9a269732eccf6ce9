// Package dialects asks the same of every dialect, and compares the answers.
package dialects

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	capital = "What is the capital of France?"
	paris   = "The capital of France is Paris."
)

// inDialects are questions whose answers are the same in every dialect, streamed or not. A new one is a row here; a new dialect is one in
// harness.Doors.
var inDialects = []struct {
	name     string
	question harness.Question // of the shipped model, unless it names another
	text     string           // the answer; empty: whatever it is in the first dialect
	status   int              // of an error; 0: none
	says     string           // a part of its message
}{
	{name: "a key", question: of(harness.Model, capital), text: paris},
	{name: "a bare name", question: of("tinychat", capital), text: paris},
	{name: "a key in another case", question: of("LMCADDY/TinyChat", capital), text: paris},
	{name: "the number of an instance", question: of(harness.Model+":1", capital), text: paris},
	{name: "as Ollama lists it", question: of(harness.Model+":latest", capital), text: paris},
	{name: "with a quantization, as Ollama's clients name it", question: of("tinychat:f16", capital), text: paris},
	{name: "an alias in another case", question: of("gpt-4O", capital), text: paris},
	{name: "an alias, as Ollama lists it", question: of("gpt-4o:latest", capital), text: paris},
	{name: "an alias with an accent apart", question: of("cafe\u0301", capital), text: paris},
	{name: "a pattern in another case", question: of("Claude-Opus", capital), text: paris},
	{name: "no such model", question: of("nobody", capital), status: http.StatusNotFound, says: "nobody"},
	{name: "no such instance", question: of(harness.Model+":9", capital), status: http.StatusNotFound, says: ":9"},
	{name: "another quantization", question: of("tinychat:q8_0", capital), status: http.StatusNotFound, says: "q8_0"},

	{name: "a prompt that is too long", question: harness.User(strings.Repeat("The fox is quick. ", 4000)), status: http.StatusBadRequest, says: "2048"},
	{name: "a limit", question: harness.Question{Messages: said("user", capital), Most: 3}},
	{name: "thinking", question: harness.Question{Messages: said("user", "What is 2 plus 3?"), Thinks: true}},

	{name: "nulls for all that may be left out", question: harness.Question{Messages: said("user", capital), Nulls: true}, text: paris},
	{name: "an empty system prompt", question: harness.Question{System: new(""), Messages: said("user", capital)}},
	{name: "a system prompt", question: harness.Question{System: new("Be brief."), Messages: said("user", capital)}},
	{name: "an empty answer before", question: harness.Question{Messages: said("user", "Hi", "assistant", "", "user", capital)}},

	{name: "two users", question: harness.Question{Messages: said("user", "Hi", "user", capital)}},
	{name: "a late system message", question: harness.Question{Messages: said("user", "Hi", "assistant", "Hello", "system", "Be brief.", "user", capital)}},
	{name: "a developer's message", question: harness.Question{Messages: said("developer", "Be brief.", "user", capital)}},
	{name: "two system messages", question: harness.Question{Messages: said("system", "Be brief.", "system", "Be kind.", "user", capital)}},
	{name: "the assistant first", question: harness.Question{Messages: said("assistant", "Hello", "user", capital)}},

	{name: "an image without vision", question: harness.Question{Messages: said("user", "What is this?"), Image: []byte("\x89PNG\r\n\x1a\n")}, status: http.StatusBadRequest, says: "image"},

	{name: "a tool's result", question: harness.Question{Messages: []harness.Message{
		{Role: "user", Text: "Use echo with message hello world"}, {Role: "assistant", Call: "call_abcdef1234"}, {Role: "tool", Call: "call_abcdef1234", Text: "red river"},
	}, Schema: anything}},
	{name: "a tool", question: echoing(harness.Fields{"type": "object", "properties": harness.Fields{"message": harness.Fields{"type": "string"}}, "required": []string{"message"}})},
	{name: "a tool with an odd schema", question: echoing(harness.Fields{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Echo", "type": []string{"object"}, "additionalProperties": false,
		"properties": harness.Fields{
			"message": harness.Fields{"type": []string{"string", "null"}, "description": "What to say", "format": "x-text", "examples": []string{"a"}},
			"extra":   true,
			"list":    harness.Fields{"type": "array", "items": true},
			"options": harness.Fields{"anyOf": []harness.Fields{{"type": "object"}, {"type": "null"}}, "default": nil},
		},
	})},
}

// anything is a schema that every object fits.
var anything = harness.Fields{"type": "object", "properties": harness.Fields{}}

// of is a question to a model by one of its names.
func of(model, text string) harness.Question {
	q := harness.User(text)
	q.Model = model
	return q
}

// said are messages: roles and texts in turn.
func said(all ...string) (messages []harness.Message) {
	for i := 0; i < len(all); i += 2 {
		messages = append(messages, harness.Message{Role: all[i], Text: all[i+1]})
	}
	return messages
}

// echoing has the shipped model call the tool echo, which has a schema.
func echoing(schema any) harness.Question {
	return harness.Question{Messages: said("user", "Use echo with message hello world"), Schema: schema}
}

func TestDialects(t *testing.T) {
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{
		"model " + harness.Model + " {", "\talias GPT-4o Caf\u00e9 claude-*", "\tcontext_length 2048", "\tpreload", "}",
	}})
	for _, tt := range inDialects {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := s.In(t)
			q := tt.question
			if q.Model == "" {
				q.Model = harness.Model
			}
			first := map[bool]*harness.Outcome{} // by whether the door is raw
			for i := range harness.Doors {
				door := &harness.Doors[i]
				for _, stream := range []bool{false, true} {
					request := door.Request(&q, stream)
					if request == nil {
						continue
					}
					name := fmt.Sprintf("%s, streamed: %v", door.Name, stream)
					got, err := s.Outcome(door, request)
					want := first[door.Raw]
					switch {
					case err != nil:
						t.Errorf("%s: %v", name, err)
					case tt.status != 0:
						if got.Status != tt.status || !strings.Contains(got.Error, tt.says) {
							t.Errorf("%s: %+v, want the status %d and %q", name, got, tt.status, tt.says)
						}
					case want == nil:
						if got.Status != http.StatusOK || got.Error != "" || tt.text != "" && got.Text != tt.text && !door.Raw {
							t.Errorf("%s: %+v, want %q", name, got, tt.text)
						}
						first[door.Raw] = &got
					default:
						if got.Stop == "" { // native chat doesn't say why an answer ends
							got.Stop = want.Stop
						}
						if diff := cmp.Diff(*want, got, cmpopts.EquateEmpty()); diff != "" {
							t.Errorf("%s is another answer than the first (-first +this):\n%s", name, diff)
						}
					}
				}
			}
		})
	}
}
