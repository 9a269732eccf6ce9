package traits

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"unicode"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

// unknown is a word that no template knows, as an effort and after a slash. What a template makes of it tells whether it looks for other
// words or only passes them on.
const unknown = "zzqx"

// Budgets of thinking, in tokens.
const (
	someBudget  = 512
	largeBudget = 8192
)

// switches are the arguments that turn thinking on and off, in order of preference.
var switches = []string{"enable_thinking", "thinking"}

type arguments map[string]any

func (a arguments) with(b arguments) arguments {
	both := maps.Clone(a)
	if both == nil {
		both = arguments{}
	}
	maps.Copy(both, b)
	return both
}

func (a arguments) asSwitch() request.Switch {
	if len(a) == 0 {
		return request.Switch{}
	}
	text, _ := json.Marshal(a)
	return request.Switch{Arguments: text}
}

func (l *learner) prompt(a arguments) rendered {
	c := chatOf(question)
	c.Arguments = a.asSwitch().Arguments
	return l.of(c)
}

func (l *learner) thinking(t *request.Template) {
	plain := l.prompt(nil)
	if !plain.ok {
		return
	}
	on := l.toggle(t, plain)
	if t.Thinking == nil {
		l.lines(t)
	}
	if t.Thinking == nil {
		l.budget(t, plain)
	}
	l.efforts(t, plain, on)
	if t.Thinking == nil && l.thinks(plain) {
		t.Thinking, t.Default = map[string]request.Switch{"on": {}}, "on"
	}
	if off, ok := t.Thinking["off"]; ok {
		r := l.of(switched(off, question))
		t.OffBudget = begunThought(r.prompt)
		t.OpenOff = r.ok && t.OffBudget == nil && !thoughtEnd.MatchString(r.prompt)
	}
}

func switched(to request.Switch, messages ...message) Chat {
	if to.System != "" {
		messages = append([]message{{Role: "system", Content: to.System}}, messages...)
	}
	c := chatOf(messages...)
	c.Arguments = to.Arguments
	return c
}

// unread finds out whether the engine leaves a thought that the prompt begins in the text of the answer.
func (l *learner) unread(t *request.Template) {
	words := t.Reasoning() // the last one thinks, if any does
	if l.dictate == nil || l.err != nil || len(words) == 0 {
		return
	}
	on := t.Thinking[words[len(words)-1]]
	chat := switched(on, question)
	begun := thoughtBegin.FindStringSubmatch(l.of(chat).prompt)
	if begun == nil || l.err != nil {
		return
	}
	end := strings.Replace(begun[1][:1]+"/"+begun[1][1:], "/|START_", "|END_", 1)
	said, err := l.dictate(chat, "a"+end+"b")
	if l.err = err; !strings.Contains(said, end) {
		return
	}
	t.ThoughtEnd = end
	loop := switched(on, question, calling, result)
	loop.Tools = tools
	t.ResultsThink = begunThought(l.of(loop).prompt) != nil
}

// toggle looks for an argument that turns thinking on and off. It returns the one that turns it on; nil: there is none.
func (l *learner) toggle(t *request.Template, plain rendered) (on arguments) {
	for _, name := range switches {
		on, off := arguments{name: true}, arguments{name: false}
		does, doesnt := l.prompt(on), l.prompt(off)
		if !does.ok || !doesnt.ok || does == doesnt {
			continue
		}
		t.Thinking = map[string]request.Switch{"off": off.asSwitch(), "on": on.asSwitch()}
		switch plain {
		case does:
			t.Default = "on"
		case doesnt:
			t.Default = "off"
		}
		return on
	}
	return nil
}

// lines looks for a line of the system message that turns thinking off, or on. Other templates show it as any other line.
func (l *learner) lines(t *request.Template) {
	line := func(text string) rendered {
		return l.of(chatOf(message{Role: "system", Content: "Rules1" + text}, question))
	}
	other := line("\n/" + unknown)
	isRead := func(r rendered, word string) bool {
		return r.ok && other.ok && squeezed(r.prompt) != squeezed(strings.ReplaceAll(other.prompt, unknown, word))
	}
	does, doesnt := line("\n/think"), line("\n/no_think")
	if !isRead(doesnt, "no_think") {
		return
	}
	plain := squeezed(line("").prompt)
	t.Thinking = map[string]request.Switch{"off": {System: "/no_think"}, "on": {}}
	t.Default = "on"
	if isRead(does, "think") && squeezed(doesnt.prompt) == plain {
		t.Thinking["on"], t.Default = request.Switch{System: "/think"}, "off"
	}
}

// squeezed returns a text without white space, of which a line that was taken out leaves some.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// budget looks for a number of tokens to think. Without one, a model usually thinks as much as it likes.
func (l *learner) budget(t *request.Template, plain rendered) {
	const name = "thinking_budget"
	none, some := l.prompt(arguments{name: 0}), l.prompt(arguments{name: someBudget})
	if !none.ok || !some.ok || none == some {
		return
	}
	t.Thinking = map[string]request.Switch{"off": arguments{name: 0}.asSwitch(), "on": {}}
	t.Default = "on"
	if plain == none {
		t.Default = "off"
		t.Thinking["on"] = arguments{name: largeBudget}.asSwitch()
	}
}

// efforts looks for reasoning_effort. A template that passes any word on says nothing of those that the model knows: they are then
// the usual three, and none of them turns thinking off. on are the values with which the model thinks.
func (l *learner) efforts(t *request.Template, plain rendered, on arguments) {
	const name = "reasoning_effort"
	base := plain
	if on != nil {
		base = l.prompt(on)
	}
	prompts := map[string]rendered{}
	known := func(word string) bool { return prompts[word].ok && prompts[word] != prompts[unknown] }
	passed := func(word string) bool {
		return prompts[unknown].has(unknown) && prompts[word] == rendered{strings.ReplaceAll(prompts[unknown].prompt, unknown, word), true}
	}
	for _, word := range []string{unknown, "none", "low", "medium", "high"} {
		prompts[word] = l.prompt(on.with(arguments{name: word}))
	}
	isKnown := false
	offered := map[string]bool{}
	for _, word := range []string{"low", "medium", "high"} {
		offered[word] = known(word)
		isKnown = isKnown || offered[word]
	}
	hasNone := known("none") && !passed("none")
	if isKnown && base == prompts[unknown] { // what is done without an effort has a word as well
		for _, word := range []string{"medium", "high", "low"} {
			if prompts[word] == base && !offered[word] {
				offered[word] = true
				break
			}
		}
	}
	if isKnown {
		l.offer(t, on, offered, func(word string) bool { return prompts[word] == base })
	}
	if _, ok := t.Thinking["off"]; ok || !hasNone {
		return
	}
	if !isKnown {
		t.Thinking, t.Default = map[string]request.Switch{"on": on.asSwitch()}, "on"
	}
	t.Thinking["off"] = on.with(arguments{name: "none"}).asSwitch()
	if prompts["none"] == base {
		t.Default = "off"
	}
}

// offer adds efforts, which take the place of "on".
func (l *learner) offer(t *request.Template, on arguments, offered map[string]bool, isDefault func(string) bool) {
	if t.Thinking == nil {
		t.Thinking = map[string]request.Switch{}
	}
	byDefault := ""
	for _, word := range []string{"low", "medium", "high"} {
		if !offered[word] {
			continue
		}
		t.Thinking[word] = on.with(arguments{"reasoning_effort": word}).asSwitch()
		if byDefault == "" && isDefault(word) {
			byDefault = word
		}
	}
	if t.Default != "off" {
		t.Default = byDefault
	}
	delete(t.Thinking, "on")
}

var (
	thoughtEnd = regexp.MustCompile(`(?i)(</(think|thought|thinking|seed:think|longcat_think)>|\[/THINK\]|<\|END_THINKING\|>|` +
		`<\|inner_suffix\|>)\s*(\S{1,40}\s*)?$`)
	thoughtBegin = regexp.MustCompile(`(?i)(<(think|thought|thinking|seed:think|longcat_think)>|\[THINK\]|<\|START_THINKING\|>)(\s*)` +
		`(<[^\s/<>]{1,40}>)?(\s*)$`)
	earlier    = message{Role: "assistant", Content: "<think>Thought1</think>Answer1"}
	thoughtful = message{Role: "assistant", Content: "", Reasoning: "Thought1", Calls: calling.Calls}
)

// begunThought returns how many tokens of a thought a prompt ends with, white space and a mark being one each; nil: it begins none.
func begunThought(prompt string) *int {
	found := thoughtBegin.FindStringSubmatch(prompt)
	if found == nil {
		return nil
	}
	tokens := 0
	for _, after := range found[len(found)-3:] {
		if after != "" {
			tokens++
		}
	}
	return &tokens
}

// thinks reports whether a template without a switch is that of a model that thinks: it begins the thought, leaves earlier thoughts
// out, or shows those of a running tool loop.
func (l *learner) thinks(plain rendered) bool {
	if thoughtBegin.MatchString(plain.prompt) {
		return true
	}
	before := l.of(chatOf(question, earlier, followUp))
	if before.has("Answer1") && !before.has("Thought1") {
		return true
	}
	c := chatOf(question, thoughtful, result)
	c.Tools = tools
	return l.of(c).has("Thought1")
}
