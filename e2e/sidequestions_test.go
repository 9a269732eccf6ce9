package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	instructions = "You are a careful assistant. You answer in a few plain words, and you say so if you do not know something. You make nothing up."
	askTitle     = "Write a title of three words for a conversation about rivers."
)

// story is a text of about a number of tokens.
func story(tokens int) string { return strings.Repeat("The red river runs to the sea. ", tokens/13) }

// talk is how a client of a dialect holds a conversation.
type talk struct {
	say   func(text string) // a turn of it
	aside func(text string) // a question of its own with the same instructions, of which the conversation knows nothing
}

// talks begin a conversation in each dialect, in the form in which its clients do.
var talks = map[string]func(s *harness.Server) talk{
	"chat completions": func(s *harness.Server) talk {
		system := harness.Fields{"role": "system", "content": instructions}
		ask := func(messages []harness.Fields) string {
			return s.Post(harness.ChatPath, harness.Fields{
				"model": harness.Model, "messages": messages, "temperature": 0, "max_tokens": 8,
				"chat_template_kwargs": harness.Fields{"enable_thinking": false},
			}).Want(s.T, http.StatusOK).Get("choices.0.message.content").Str
		}
		messages := []harness.Fields{system}
		return talk{
			say: func(text string) {
				messages = append(messages, harness.Fields{"role": "user", "content": text})
				messages = append(messages, harness.Fields{"role": "assistant", "content": ask(messages)})
			},
			aside: func(text string) { ask([]harness.Fields{system, {"role": "user", "content": text}}) },
		}
	},
	"Responses": func(s *harness.Server) talk {
		last := ""
		ask := func(input any) harness.Fields {
			return harness.RespondAsk(input).Quick().With("instructions", instructions).With("max_output_tokens", 8)
		}
		return talk{
			say: func(text string) {
				request := ask(text)
				if last != "" {
					request = request.After(last)
				}
				last = s.Respond(request).Get("id").Str
			},
			aside: func(text string) { s.Respond(ask(text).With("store", false)) },
		}
	},
	"native chat": func(s *harness.Server) talk {
		last := ""
		ask := func(text string) harness.Fields {
			return harness.NativeAsk(text).With("reasoning", "off").With("max_output_tokens", 8)
		}
		return talk{
			say: func(text string) {
				request := ask(text).With("system_prompt", instructions)
				if last != "" {
					request = ask(text).After(last)
				}
				last = s.NativeChat(request).Get("response_id").Str
			},
			aside: func(text string) { s.NativeChat(ask(text).With("system_prompt", instructions).With("store", false)) },
		}
	},
	"Messages": func(s *harness.Server) talk {
		mark := harness.Fields{"type": "ephemeral"} // as agents move it to the last message
		block := func(text string) harness.Fields { return harness.Fields{"type": "text", "text": text} }
		ask := func(messages []harness.Fields) string {
			return s.Post("/v1/messages", harness.Fields{
				"model": harness.Model, "max_tokens": 8, "temperature": 0, "system": []harness.Fields{block(instructions).With("cache_control", mark)}, "messages": messages,
			}).Want(s.T, http.StatusOK).Get("content.0.text").Str
		}
		var messages []harness.Fields
		user := func(text string) harness.Fields {
			return harness.Fields{"role": "user", "content": []harness.Fields{block(text).With("cache_control", mark)}}
		}
		return talk{
			say: func(text string) {
				answer := ask(append(messages, user(text)))
				messages = append(messages, harness.Fields{"role": "user", "content": []harness.Fields{block(text)}}, harness.Fields{"role": "assistant", "content": answer})
			},
			aside: func(text string) { ask([]harness.Fields{user(text)}) },
		}
	},
	"completions": func(s *harness.Server) talk {
		ask := func(prompt string) string {
			return s.Post("/v1/completions", harness.Fields{"model": harness.Model, "prompt": prompt, "temperature": 0, "max_tokens": 8}).
				Want(s.T, http.StatusOK).Get("choices.0.text").Str
		}
		so := instructions
		return talk{
			say:   func(text string) { so += "\n\n" + text; so += ask(so) },
			aside: func(text string) { ask(instructions + "\n\n" + text) },
		}
	},
}

// processed counts the tokens of prompts that the engine has processed since it was started.
func processed(s *harness.Server) int {
	s.T.Helper()
	for line := range strings.Lines(s.Engine().Get(s.T, "/metrics")) {
		if value, ok := strings.CutPrefix(line, "llamacpp:prompt_tokens_total "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				s.T.Fatal(err)
			}
			return n
		}
	}
	s.T.Fatal("the engine doesn't count the tokens of prompts")
	return 0
}

// costs returns the number of tokens that the engine processes for what a function asks.
func costs(s *harness.Server, ask func()) int {
	s.T.Helper()
	before := processed(s)
	ask()
	return processed(s) - before
}

// counting is an engine without a cache beside its slots, which counts what it processes.
func counting(slots int) harness.Config {
	return harness.Config{Engine: []string{"parallel " + strconv.Itoa(slots), "args --metrics", "args --cache-ram 0"}}
}

// TestSlots_AConversationKeepsItsOwn: a short question between the turns of a long conversation doesn't cost it what the engine has
// processed.
func TestSlots_AConversationKeepsItsOwn(t *testing.T) {
	t.Parallel()
	for name, begin := range talks {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(harness.NewHome(t), counting(4))
			s.Post(harness.LoadPath, harness.Fields{"model": harness.Model}).Want(t, http.StatusOK)
			talk := begin(s)
			first, turns, asides := costs(s, func() { talk.say(story(800)) }), 0, 0
			for i := range 4 {
				asides += costs(s, func() { talk.aside(askTitle) })
				turn := costs(s, func() { talk.say("What runs to the sea? " + strconv.Itoa(i)) })
				if turn > 150 {
					t.Errorf("turn %d has taken %d tokens, of a conversation that began with %d", i+2, turn, first)
				}
				turns += turn
			}
			t.Logf("processed: %d tokens at first, %d for 4 more turns, %d for 4 questions beside it", first, turns, asides)
		})
	}
}

// TestSlots_AgentsWithTheSameSystemPrompt: two sessions of an agent begin alike. Each processes what is its own, and the common part
// at most once for each of them.
func TestSlots_AgentsWithTheSameSystemPrompt(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), counting(4))
	s.Post(harness.LoadPath, harness.Fields{"model": harness.Model}).Want(t, http.StatusOK)
	session := func(name string) func(text string) {
		messages := []harness.Fields{{"role": "system", "content": story(1000)}, {"role": "user", "content": "My name is " + name + ". " + story(500)}}
		return func(text string) {
			answer := s.Post(harness.ChatPath, harness.Fields{
				"model": harness.Model, "messages": messages, "temperature": 0, "max_tokens": 8,
				"chat_template_kwargs": harness.Fields{"enable_thinking": false},
			}).Want(t, http.StatusOK).Get("choices.0.message.content").Str
			messages = append(messages, harness.Fields{"role": "assistant", "content": answer}, harness.Fields{"role": "user", "content": text + story(200)})
		}
	}
	ada, bob := session("Ada"), session("Bob")
	first := costs(s, func() { ada("Go on. ") })
	second := costs(s, func() { bob("Go on. ") })
	later := 0
	for range 4 {
		later += costs(s, func() { ada("Go on. "); bob("Go on. ") })
	}
	t.Logf("processed: %d and %d tokens at first, %d for 4 more turns of both", first, second, later)
	if later > 8*300+first { // each turn adds less than 300
		t.Errorf("%d tokens for the later turns of both, after %d and %d for the first", later, first, second)
	}
}
