package lineedit

import (
	"errors"
	"io"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

// typed is a question of which some keys were pressed; a word of more than a character names a key, or is typed.
func typed(e *Editor, keys ...string) *question {
	q := e.begin("> ")
	named := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "tab": {Code: tea.KeyTab}, "left": {Code: tea.KeyLeft},
		"alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
	}
	q.Update(tea.WindowSizeMsg{Width: 40, Height: 10})
	for _, key := range keys {
		if k, ok := named[key]; ok {
			q.Update(tea.KeyPressMsg(k))
			continue
		}
		for _, r := range key {
			q.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return q
}

func TestEditor_Keys(t *testing.T) {
	t.Parallel()
	complete := func(begun string) (all []string) {
		for _, word := range []string{"/save", "/set"} {
			if strings.HasPrefix(word, begun) {
				all = append(all, word)
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		keys []string
		want string
		err  error
	}{
		"a line":               {[]string{"one", "enter"}, "one", nil},
		"combined characters":  {[]string{"e\u0301 नि 世界", "enter"}, "e\u0301 नि 世界", nil},
		"lines":                {[]string{"one", "alt+enter", "two", "enter"}, "one\ntwo", nil},
		"a backslash":          {[]string{`one\`, "enter", "two", "enter"}, "one\\\ntwo", nil},
		"quotes":               {[]string{`"""one`, "enter", `two"""`, "enter"}, "\"\"\"one\ntwo\"\"\"", nil},
		"amid the line":        {[]string{"oe", "left", "n", "enter"}, "one", nil},
		"an interruption":      {[]string{"one", "ctrl+c"}, "one", ErrInterrupted},
		"the end":              {[]string{"ctrl+d"}, "", io.EOF},
		"an earlier one":       {[]string{"up", "up", "enter"}, "first", nil},
		"and back":             {[]string{"draft", "up", "up", "down", "down", "enter"}, "draft", nil},
		"one that is searched": {[]string{"ir", "ctrl+r", "enter"}, "first", nil},
		"a completed word":     {[]string{"/sa", "tab", " x", "enter"}, "/save x", nil},
		"a doubtful word":      {[]string{"/", "tab", "e", "enter"}, "/se", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := typed(New(&History{questions: []string{"first", "second"}}, complete), tt.keys...)
			if got := q.area.Value(); got != tt.want || !errors.Is(q.err, tt.err) {
				t.Errorf("%q, %v; want %q, %v", got, q.err, tt.want, tt.err)
			}
		})
	}
	q := typed(New(new(History), complete), "/s", "tab")
	if got := strings.Fields(q.View().Content); !cmp.Equal(got, []string{">", "/s", "/save", "/set"}) {
		t.Errorf("shown are %q", got)
	}
}

func TestEditor_Paste(t *testing.T) {
	t.Parallel()
	q := typed(New(new(History), nil), "see ")
	q.Update(tea.PasteMsg{Content: "one\r\ntwo\rthree"})
	if got := q.area.Value(); got != "see one\ntwo\nthree" || q.err != io.EOF { //nolint:errorlint // it isn't sent
		t.Errorf("%q, %v", got, q.err)
	}
	shown := strings.Split(strings.TrimRight(q.View().Content, " \n"), "\n")
	for i := range shown {
		shown[i] = strings.TrimRight(shown[i], " ")
	}
	if diff := cmp.Diff([]string{"> see one", "  two", "  three"}, shown); diff != "" {
		t.Error(diff)
	}
}

// What is typed behind a question, before its end is noticed, is of the next one.
func TestEditor_TypesAhead(t *testing.T) {
	t.Parallel()
	e := New(new(History), nil)
	if q := typed(e, "one", "enter", "two"); q.area.Value() != "one" || q.err != nil {
		t.Errorf("%q, %v", q.area.Value(), q.err)
	}
	e.ahead = append(e.ahead, tea.KeyPressMsg{Code: tea.KeyEnter})
	if text, err := e.Read("> "); text != "two" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
