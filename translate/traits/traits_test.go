package traits_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/traits"
)

// template renders a chat: a head, the messages, and where the answer begins. An error is a refusal.
type template struct {
	head    func(args gjson.Result) (string, error)
	message func(all []gjson.Result, i int) (string, error)
	begin   func(all []gjson.Result, args gjson.Result) string
	noTools bool
	tools   func(gjson.Result) bool // whether they are taken; nil: all are
}

func (p template) render(c traits.Chat) (prompt string, ok bool, _ error) {
	args, all := gjson.ParseBytes(c.Arguments), gjson.ParseBytes(c.Messages).Array()
	var b strings.Builder
	if p.head != nil {
		text, err := p.head(args)
		if err != nil {
			return "", false, nil
		}
		b.WriteString(text)
	}
	if p.tools != nil && !p.tools(gjson.ParseBytes(c.Tools)) {
		return "", false, nil
	}
	if !p.noTools {
		b.WriteString(gjson.GetBytes(c.Tools, "0.function.name").Str)
	}
	for i, m := range all {
		if p.message == nil {
			b.WriteString("<" + m.Get("role").Str + ">" + contentOf(m) + m.Get("tool_calls").Raw + "\n")
			continue
		}
		text, err := p.message(all, i)
		if err != nil {
			return "", false, nil
		}
		b.WriteString(text)
	}
	b.WriteString("<assistant>")
	if p.begin != nil {
		b.WriteString(p.begin(all, args))
	}
	return b.String(), true, nil
}

func contentOf(m gjson.Result) string {
	text := m.Get("content").Str
	for _, part := range m.Get("content").Array() {
		text += part.Get("text").Str
	}
	return text
}

// hasLine reports whether a message has a word, as a line to the template.
func hasLine(all []gjson.Result, word string) bool {
	return slices.ContainsFunc(all, func(m gjson.Result) bool { return strings.Contains(contentOf(m), word) })
}

var errRefused = errors.New("raise_exception")

func arguments(text string) request.Switch { return request.Switch{Arguments: json.RawMessage(text)} }

// passes is a template that writes any effort as it is.
func passes(before, byDefault string) func(gjson.Result) (string, error) {
	return func(args gjson.Result) (string, error) {
		effort := byDefault
		if e := args.Get("reasoning_effort"); e.Exists() {
			effort = e.Str
		}
		return before + effort + "\n", nil
	}
}

// knows is a template that does something for each of some efforts, and something else for any other.
func knows(other string, efforts ...string) func(gjson.Result) (string, error) {
	return func(args gjson.Result) (string, error) {
		if e := args.Get("reasoning_effort").Str; slices.Contains(efforts, e) {
			return fmt.Sprintf("Style %d\n", slices.Index(efforts, e)), nil
		}
		return other + "\n", nil
	}
}

func TestLearn_Thinking(t *testing.T) {
	t.Parallel()
	toggled := func(name string, byDefault bool) func([]gjson.Result, gjson.Result) string {
		return func(_ []gjson.Result, args gjson.Result) string {
			if v := args.Get(name); v.Exists() && !v.Bool() || !v.Exists() && !byDefault {
				return "<think>\n\n</think>\n"
			}
			return ""
		}
	}
	switches := func(off, on request.Switch) map[string]request.Switch {
		return map[string]request.Switch{"off": off, "on": on}
	}
	graded := map[string]request.Switch{
		"low": arguments(`{"reasoning_effort":"low"}`), "medium": arguments(`{"reasoning_effort":"medium"}`), "high": arguments(`{"reasoning_effort":"high"}`),
	}
	with := func(more map[string]request.Switch, without ...string) map[string]request.Switch {
		all := map[string]request.Switch{}
		for _, m := range []map[string]request.Switch{graded, more} {
			for word, s := range m {
				if !slices.Contains(without, word) {
					all[word] = s
				}
			}
		}
		return all
	}
	none := arguments(`{"reasoning_effort":"none"}`)
	// Without thinking, the prompt of these ends no thought.
	open := []string{"no effort but off", "efforts that are known, with off", "a budget, without which it is silent", "efforts of which others are refused"}
	begun := map[string]*int{"a budget, without which a thought that was begun goes on": new(2)}
	for name, tt := range map[string]struct {
		template
		thinking  map[string]request.Switch
		byDefault string
	}{
		"none": {template{}, nil, ""},
		"enable_thinking, on": {
			template{begin: toggled("enable_thinking", true)}, switches(arguments(`{"enable_thinking":false}`), arguments(`{"enable_thinking":true}`)), "on",
		},
		"enable_thinking, off": {
			template{begin: toggled("enable_thinking", false)}, switches(arguments(`{"enable_thinking":false}`), arguments(`{"enable_thinking":true}`)), "off",
		},
		"thinking": {template{begin: toggled("thinking", false)}, switches(arguments(`{"thinking":false}`), arguments(`{"thinking":true}`)), "off"},
		"a budget": {
			template{begin: func(_ []gjson.Result, args gjson.Result) string {
				switch budget := args.Get("thinking_budget"); {
				case !budget.Exists():
					return ""
				case budget.Int() == 0:
					return "<think></think>"
				default:
					return "The budget is " + budget.Raw
				}
			}},
			switches(arguments(`{"thinking_budget":0}`), request.Switch{}), "on",
		},
		"a budget, without which a thought that was begun goes on": {
			template{begin: func(_ []gjson.Result, args gjson.Result) string {
				if budget := args.Get("thinking_budget"); budget.Exists() && budget.Int() == 0 {
					return "<seed:think><budget>\n"
				}
				return ""
			}},
			switches(arguments(`{"thinking_budget":0}`), request.Switch{}), "on",
		},
		"a budget, without which it is silent": {
			template{begin: func(_ []gjson.Result, args gjson.Result) string {
				return fmt.Sprint("Budget ", args.Get("thinking_budget").Int())
			}},
			switches(arguments(`{"thinking_budget":0}`), arguments(`{"thinking_budget":8192}`)), "off",
		},
		"a line of the system message": {
			template{
				message: func(all []gjson.Result, i int) (string, error) {
					return all[i].Get("role").Str + strings.NewReplacer("/no_think", "", "/think", "").Replace(contentOf(all[i])) + all[i].Get("tool_calls").Raw, nil
				},
				begin: func(all []gjson.Result, _ gjson.Result) string {
					if hasLine(all, "/no_think") {
						return "<think></think>"
					}
					return "<think>\n"
				},
			},
			switches(request.Switch{System: "/no_think"}, request.Switch{}), "on",
		},
		"a line without which it is silent": {
			template{
				message: func(all []gjson.Result, i int) (string, error) {
					return all[i].Get("role").Str + strings.NewReplacer("/no_think", "", "/think", "").Replace(contentOf(all[i])) + all[i].Get("tool_calls").Raw, nil
				},
				begin: func(all []gjson.Result, _ gjson.Result) string {
					if hasLine(all, "/think") {
						return "<think>\n"
					}
					return "<think></think>"
				},
			},
			switches(request.Switch{System: "/no_think"}, request.Switch{System: "/think"}), "off",
		},
		"efforts that are passed on":       {template{head: passes("Reasoning: ", "medium")}, graded, "medium"},
		"efforts, of which none is chosen": {template{head: passes("Reasoning: ", "as you like")}, graded, ""},
		"efforts that are known":           {template{head: knows("", "low", "high")}, graded, "medium"},
		"efforts that are known, with off": {template{head: knows("", "none", "high")}, with(map[string]request.Switch{"off": none}, "low"), "medium"},
		"no effort but off":                {template{head: knows("", "none")}, switches(none, request.Switch{}), "on"},
		"efforts of which others are refused": {
			template{head: func(args gjson.Result) (string, error) {
				effort := args.Get("reasoning_effort")
				if effort.Exists() && effort.Str != "none" && effort.Str != "high" {
					return "", errRefused
				}
				if !effort.Exists() {
					return "none", nil
				}
				return effort.Str, nil
			}},
			map[string]request.Switch{"off": none, "high": graded["high"]},
			"off",
		},
		"a switch and efforts": {
			template{
				begin: toggled("enable_thinking", true),
				head: func(args gjson.Result) (string, error) {
					if v := args.Get("enable_thinking"); v.Exists() && !v.Bool() {
						return "", nil
					}
					return passes("Effort: ", "high")(args)
				},
			},
			map[string]request.Switch{
				"off": arguments(`{"enable_thinking":false}`), "low": arguments(`{"enable_thinking":true,"reasoning_effort":"low"}`),
				"medium": arguments(`{"enable_thinking":true,"reasoning_effort":"medium"}`), "high": arguments(`{"enable_thinking":true,"reasoning_effort":"high"}`),
			},
			"high",
		},
		"always, as its beginning shows": {
			template{begin: func([]gjson.Result, gjson.Result) string { return "<think>\n" }}, map[string]request.Switch{"on": {}}, "on",
		},
		"always, since thoughts are left out": {
			template{message: func(all []gjson.Result, i int) (string, error) {
				_, text, found := strings.Cut(contentOf(all[i]), "</think>")
				if !found {
					text = contentOf(all[i])
				}
				return text + all[i].Get("tool_calls").Raw, nil
			}},
			map[string]request.Switch{"on": {}},
			"on",
		},
		"always, since thoughts are shown": {
			template{message: func(all []gjson.Result, i int) (string, error) {
				return all[i].Get("reasoning_content").Str + contentOf(all[i]) + all[i].Get("tool_calls").Raw, nil
			}},
			map[string]request.Switch{"on": {}},
			"on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := traits.Learn(tt.render, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := &request.Template{Thinking: tt.thinking, Default: tt.byDefault, OpenOff: slices.Contains(open, name), OffBudget: begun[name]}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLearn_Messages(t *testing.T) {
	t.Parallel()
	shown := func(m gjson.Result) (string, error) { return contentOf(m) + m.Get("tool_calls").Raw, nil }
	role := func(all []gjson.Result, i int) string {
		if i < 0 {
			return ""
		}
		return all[i].Get("role").Str
	}
	for name, tt := range map[string]struct {
		template
		want request.Template
	}{
		"no system message": {template{message: func(all []gjson.Result, i int) (string, error) {
			if role(all, i) == "system" {
				return "", errRefused
			}
			return shown(all[i])
		}}, request.Template{NoSystem: true, NoLateSystem: true}},
		"a late system message is dropped": {template{message: func(all []gjson.Result, i int) (string, error) {
			if role(all, i) == "system" && i > 0 {
				return "", nil
			}
			return shown(all[i])
		}}, request.Template{NoLateSystem: true}},
		"strict alternation": {template{message: func(all []gjson.Result, i int) (string, error) {
			if role(all, i) != "tool" && role(all, i) == role(all, i-1) {
				return "", errRefused
			}
			return shown(all[i])
		}}, request.Template{Alternates: true, NoLateSystem: true}},
		"only the last of the assistant's messages": {template{message: func(all []gjson.Result, i int) (string, error) {
			if i+1 < len(all) && role(all, i) == "assistant" && role(all, i+1) == "assistant" {
				return "", nil
			}
			return shown(all[i])
		}}, request.Template{Alternates: true}},
		"no tools": {template{noTools: true}, request.Template{NoTools: true}},
		"calls are dropped": {template{message: func(all []gjson.Result, i int) (string, error) {
			return contentOf(all[i]), nil
		}}, request.Template{NoCalls: true}},
		"a bare result is refused": {template{message: func(all []gjson.Result, i int) (string, error) {
			if role(all, i) == "tool" {
				return "", errRefused
			}
			return shown(all[i])
		}}, request.Template{NoResults: true}},
		"calls and results are refused": {template{message: func(all []gjson.Result, i int) (string, error) {
			if role(all, i) == "tool" || all[i].Get("tool_calls").Exists() {
				return "", errRefused
			}
			return shown(all[i])
		}}, request.Template{NoCalls: true, NoResults: true}},
		"one call at a time": {template{message: func(all []gjson.Result, i int) (string, error) {
			if len(all[i].Get("tool_calls").Array()) > 1 {
				return "", errRefused
			}
			return shown(all[i])
		}}, request.Template{SingleCalls: true}},
		"a type for each property": {template{tools: func(tools gjson.Result) bool {
			isTyped := true
			tools.Get("0.function.parameters.properties").ForEach(func(_, p gjson.Result) bool {
				isTyped = p.Get("type").Type == gjson.String
				return isTyped
			})
			return isTyped
		}}, request.Template{TypedTools: true}},
		"only texts": {template{message: func(all []gjson.Result, i int) (string, error) {
			return all[i].Get("content").Str + all[i].Get("tool_calls").Raw, nil
		}}, request.Template{NoParts: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := traits.Learn(tt.render, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLearn_EndsAtAFailure: a server that is gone is no template that refuses everything.
func TestLearn_EndsAtAFailure(t *testing.T) {
	t.Parallel()
	for at := range 8 {
		n := 0
		got, err := traits.Learn(func(c traits.Chat) (string, bool, error) {
			if n++; n > at {
				return "", false, errRefused
			}
			return template{}.render(c)
		}, nil)
		if got != nil || !errors.Is(err, errRefused) || n != at+1 {
			t.Errorf("%d: %+v and %v after %d chats", at, got, err, n)
		}
	}
}

// TestLearn_ThoughtsThatTheEngineLeaves: whether an engine finds the thought that a prompt begins is seen from an answer, and asked only
// where one does.
func TestLearn_ThoughtsThatTheEngineLeaves(t *testing.T) {
	t.Parallel()
	begins := func(mark string, always bool) template {
		return template{begin: func(all []gjson.Result, args gjson.Result) string {
			if !args.Get("thinking").Bool() || !always && all[len(all)-1].Get("role").Str == "tool" {
				return ""
			}
			return mark
		}}
	}
	for name, tt := range map[string]struct {
		template
		finds        bool
		dictated     string
		end          string
		resultsThink bool
	}{
		"left":                        {begins("<think>", true), false, "a</think>b", "</think>", true},
		"left, and none after a tool": {begins("<think>\n", false), false, "a</think>b", "</think>", false},
		"left, other marks":           {begins("<|START_THINKING|>", true), false, "a<|END_THINKING|>b", "<|END_THINKING|>", true},
		"found":                       {begins("[THINK]", true), true, "a[/THINK]b", "", false},
		"begun by the model":          {begins("", true), false, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dictated := ""
			got, err := traits.Learn(tt.render, func(c traits.Chat, text string) (string, error) {
				if dictated = text; !gjson.GetBytes(c.Arguments, "thinking").Bool() {
					t.Errorf("it is asked with %s", c.Arguments)
				}
				if tt.finds {
					text = "b"
				}
				return text, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if dictated != tt.dictated || got.ThoughtEnd != tt.end || got.ResultsThink != tt.resultsThink {
				t.Errorf("dictated %q, found %q and %t", dictated, got.ThoughtEnd, got.ResultsThink)
			}
		})
	}
	if got, err := traits.Learn(begins("<think>", true).render, func(traits.Chat, string) (string, error) { return "", errRefused }); got != nil || !errors.Is(err, errRefused) {
		t.Errorf("after a failure: %+v and %v", got, err)
	}
}
