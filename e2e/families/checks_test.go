package families

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// checks are what is asked of each model, in this order. The first loads it.
var checks = []struct {
	name string
	do   func(asker) error
}{
	{"listing", listing},
	{"thinking", thinking},
	{"forced call", forcedCall},
	{"schema", schema},
	{"tools", tools},
	{"tool loop", toolLoop},
	{"roles", roles},
	{"warm", warm},
}

var hi = []harness.Message{{Role: "user", Text: "Hi"}}

// listing: once the model has answered, the listing knows what it is.
func listing(a asker) error {
	if _, err := a.prompt(harness.Dialects[0], hi, nil); err != nil {
		return err
	}
	m := a.listed()
	words := m.Get("capabilities.reasoning.allowed_options")
	byDefault := m.Get("capabilities.reasoning.default").Str
	switch {
	case m.Get("type").Str != "llm" || m.Get("loaded_instances.#").Int() != 1:
		return fmt.Errorf("it is listed as %s", short(m.Raw))
	case words.Exists() && byDefault != "" && !slices.Contains(texts(words), byDefault):
		return fmt.Errorf("its default %q isn't one of %s", byDefault, words.Raw)
	}
	return nil
}

func (a asker) listed() gjson.Result {
	return a.s.Get("/api/v1/models").Get(`models.#(key=="` + a.key + `")`)
}

func texts(array gjson.Result) (all []string) {
	for _, v := range array.Array() {
		all = append(all, v.Str)
	}
	return all
}

// thinking: each setting that is listed is accepted, has its own prompt, and every other is refused. Without thinking there is none.
func thinking(a asker) error {
	reasoning := a.listed().Get("capabilities.reasoning")
	offered, byDefault := texts(reasoning.Get("allowed_options")), reasoning.Get("default").Str
	request := harness.Fields{"input": "Hi", "max_output_tokens": harness.MostWords, "temperature": 0, "store": false}
	usual, err := a.post("/api/v1/chat", request)
	if err != nil {
		return err
	}
	prompts, thinks := map[string]int64{}, map[string]bool{}
	for _, word := range []string{"off", "low", "medium", "high", "on"} {
		answer, err := a.post("/api/v1/chat", request.With("reasoning", word))
		isOffered := slices.Contains(offered, word)
		switch {
		case !isOffered && (err == nil || !strings.Contains(err.Error(), `"param":"reasoning"`)):
			return fmt.Errorf("%q, which isn't offered: %s %w", word, short(answer.Raw), err)
		case !isOffered:
			continue
		case err != nil:
			return fmt.Errorf("%q: %w", word, err)
		}
		prompts[word] = answer.Get("stats.input_tokens").Int()
		thought := answer.Get(`output.#(type=="reasoning")`)
		if thinks[word] = thought.Exists(); word == "off" && thinks[word] {
			return fmt.Errorf("off, and it thinks: %s", short(thought.Raw))
		}
		if word == byDefault && prompts[word] != usual.Get("stats.input_tokens").Int() {
			return fmt.Errorf("%q is the default, and has a prompt of %d tokens, not %s", word, prompts[word], usual.Get("stats.input_tokens"))
		}
	}
	if on, hasOn := prompts["on"]; hasOn && slices.Contains(offered, "off") && on == prompts["off"] && !thinks["on"] {
		return fmt.Errorf("on and off have prompts of %d tokens, and it thinks with neither", on)
	}
	return nil
}

// forcedCall: a call that is required is made, with arguments that the tool's schema allows.
func forcedCall(a asker) error {
	for _, d := range harness.Dialects {
		if d.Forced == nil {
			continue
		}
		if _, err := a.made(d, hi); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	named := harness.Merge(harness.Dialects[0].Tools("Weather"), harness.Dialects[0].Forced, harness.Fields{"tool_choice": harness.Fields{"type": "function", "function": harness.Fields{"name": harness.Weather}}})
	answer, err := a.post(harness.ChatPath, harness.Dialects[0].Request(hi, named))
	if err == nil {
		_, err = wantCall(harness.Dialects[0], answer)
	}
	return err
}

// made requires a call, and returns its id.
func (a asker) made(d harness.Dialect, turns []harness.Message) (id string, _ error) {
	answer, err := a.post(d.Path, d.Request(turns, harness.Merge(d.Tools("Weather"), d.Forced)))
	if err != nil {
		return "", err
	}
	return wantCall(d, answer)
}

func wantCall(d harness.Dialect, answer gjson.Result) (id string, _ error) {
	id, arguments := d.Call(answer)
	if answer.Get(d.Cut).Str == d.AtLimit { // it thinks, or writes white space: no model with random weights comes to an end
		return cmp.Or(id, d.ID), nil
	}
	if city := gjson.Get(arguments, "city").Str; id == "" || city != "Rome" && city != "Oslo" {
		return "", fmt.Errorf("no such Call: %s", short(answer.Raw))
	}
	return id, nil
}

// schema: an answer has the form that its request wants, also if tools are offered; then it may be a call.
func schema(a asker) error {
	form := harness.Fields{"type": "object", "properties": harness.Fields{"a": harness.Fields{"enum": []string{"x", "y"}}}, "required": []string{"a"}, "additionalProperties": false}
	for name, want := range map[string]struct {
		dialect int
		format  harness.Fields
		content string
	}{
		"chat": {0, harness.Fields{"response_format": harness.Fields{"type": "json_schema", "json_schema": harness.Fields{"name": "a", "strict": true, "schema": form}}, "max_tokens": harness.MostCall}, "choices.0.message.content"},
		"responses": {
			2,
			harness.Fields{"text": harness.Fields{"format": harness.Fields{"type": "json_schema", "name": "a", "strict": true, "schema": form}}, "max_output_tokens": harness.MostCall},
			`output.#(type=="message").content.0.text`,
		},
		"ollama": {3, harness.Fields{"format": form, "options": harness.Fields{"temperature": 0, "num_predict": harness.MostCall}}, "message.content"},
	} {
		d := harness.Dialects[want.dialect]
		for _, tools := range []harness.Fields{{}, d.Tools("Weather")} {
			answer, err := a.post(d.Path, d.Request(hi, harness.Merge(want.format, tools)))
			if err != nil {
				return fmt.Errorf("%s with %d tools: %w", name, len(tools), err)
			}
			content := answer.Get(want.content).Str
			if v := gjson.Get(content, "a").Str; json.Valid([]byte(content)) && (v == "x" || v == "y") {
				continue
			}
			if id, _ := d.Call(answer); id != "" && len(tools) > 0 || answer.Get(d.Cut).Str == d.AtLimit {
				continue
			}
			return fmt.Errorf("%s with %d tools: %s", name, len(tools), short(answer.Raw))
		}
	}
	return nil
}

// tools: the model sees the tools that it is offered, or it would call none of them.
func tools(a asker) error {
	for _, d := range harness.Dialects {
		if err := a.sees(d, func(text string) ([]harness.Message, harness.Fields) { return hi, d.Tools(text) }); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

// sees checks that a text is in the prompt: a longer one makes it longer.
func (a asker) sees(d harness.Dialect, request func(text string) ([]harness.Message, harness.Fields)) error {
	const words = 30
	var tokens [2]int
	for i, text := range []string{"Plain.", "Plain." + strings.Repeat(" brief", words)} {
		var err error
		turns, fields := request(text)
		if tokens[i], err = a.prompt(d, turns, fields); err != nil {
			return err
		}
	}
	if tokens[1] < tokens[0]+words {
		return fmt.Errorf("with %d more words the prompt has %d tokens, and %d without", words, tokens[1], tokens[0])
	}
	return nil
}

// toolLoop: a conversation with three turns goes on with ids that the client made, and with the server's. The model sees each result.
func toolLoop(a asker) error {
	for _, d := range harness.Dialects {
		ids := []string{d.ID}
		if d.Forced != nil {
			id, err := a.made(d, hi)
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
			ids = append(ids, id)
		}
		for _, id := range ids {
			turns := hi
			for i := range 3 {
				call := id + strings.Repeat("b", i)
				turns = append(slices.Clone(turns), harness.Message{Role: "assistant", Call: call})
				err := a.sees(d, func(text string) ([]harness.Message, harness.Fields) {
					return append(slices.Clone(turns), harness.Message{Role: "tool", Call: call, Text: text}), d.Tools("Weather")
				})
				if err != nil {
					return fmt.Errorf("%s, turn %d with the id %q: %w", d.Name, i+1, id, err)
				}
				turns = append(turns, harness.Message{Role: "tool", Call: call, Text: "sunny"})
			}
		}
	}
	return nil
}

// roles: messages in orders that templates refuse, and agents send. The model sees each text.
func roles(a asker) error {
	use, done := harness.Message{Role: "assistant", Call: "call_1"}, harness.Message{Role: "tool", Call: "call_1", Text: "sunny"}
	user, system, assistant := harness.Message{Role: "user", Text: "Hi"}, harness.Message{Role: "system", Text: "S"}, harness.Message{Role: "assistant", Text: "Hello"}
	for name, turns := range map[string][]harness.Message{ // the empty one has the text
		"system":                         {{Role: "system"}, user},
		"the first of two systems":       {{Role: "system"}, system, user},
		"the second of two systems":      {system, {Role: "system"}, user},
		"developer":                      {{Role: "developer"}, user},
		"the first of two users":         {{Role: "user"}, user},
		"the second of three users":      {user, {Role: "user"}, user},
		"a late system message":          {user, assistant, {Role: "system"}, user},
		"system before a late one":       {{Role: "system"}, user, assistant, system, user},
		"a late developer message":       {user, assistant, {Role: "developer"}, user},
		"system at the end":              {user, {Role: "system"}},
		"the assistant first":            {{Role: "assistant"}, user},
		"the first of two answers":       {user, {Role: "assistant"}, assistant, user},
		"the second of two answers":      {user, assistant, {Role: "assistant"}, user},
		"a text after a result":          {user, use, done, {Role: "user"}},
		"a result before a text":         {user, use, {Role: "tool", Call: "call_1"}, user},
		"a late system after a result":   {user, use, done, {Role: "system"}},
		"the user's text before results": {{Role: "user"}, use, done, user, use, done},
	} {
		for _, d := range harness.Dialects {
			if d.Name == "messages" && hasRole(turns, "system", "developer") || d.Name == "ollama" && hasRole(turns, "developer") {
				continue // the dialect has no such messages
			}
			err := a.sees(d, func(text string) ([]harness.Message, harness.Fields) {
				told := slices.Clone(turns)
				for i := range told {
					if it := told[i]; it.Text == "" && (it.Call == "" || it.Role == "tool") {
						told[i].Text = text
					}
				}
				if !hasRole(turns, "tool") {
					return told, nil
				}
				return told, d.Tools("Weather")
			})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", d.Name, name, err)
			}
		}
	}
	return nil
}

func hasRole(turns []harness.Message, roles ...string) bool {
	return slices.ContainsFunc(turns, func(t harness.Message) bool { return slices.Contains(roles, t.Role) })
}

// warm: what was saved of a conversation when the model left is used when it is back.
func warm(a asker) error {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog and so on. ", 120)
	turns := []harness.Message{{Role: "user", Text: text}}
	if _, err := a.prompt(harness.Dialects[0], turns, nil); err != nil {
		return err
	}
	for _, instance := range a.listed().Get("loaded_instances.#.id").Array() {
		if _, err := a.s.Try(harness.UnloadPath, harness.Fields{"instance_id": instance.Str}); err != nil {
			return err
		}
	}
	saved := len(a.s.Get("/api/v1/warm").Get(`states.#(model=="` + a.key + `")#`).Array())
	turns = append(turns, harness.Message{Role: "assistant", Text: "Yes."}, harness.Message{Role: "user", Text: "More"})
	answer, err := a.post(harness.ChatPath, harness.Dialects[0].Request(turns, nil))
	if err != nil {
		return err
	}
	if cached := answer.Get("usage.prompt_tokens_details.cached_tokens").Int(); saved > 0 && cached == 0 {
		return errors.New("a state was saved, and isn't used")
	}
	return nil
}
