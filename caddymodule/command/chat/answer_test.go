package chat

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// TestAnswerPrinter_ControlSequences prints what would set the title of a terminal's window, or its clipboard.
func TestAnswerPrinter_ControlSequences(t *testing.T) {
	t.Parallel()
	const said = "a\x1b]0;title\ab\n\tc\u009b31md\r"
	for name, tt := range map[string]struct {
		onScreen bool
		want     string
	}{
		"on a terminal": {true, "a]0;titleb\n\tc31md\n"},
		"in a pipe":     {false, said + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, notes bytes.Buffer
			p := newAnswerPrinter(&out, &notes)
			p.onScreen, p.terminal = tt.onScreen, true
			for _, e := range []client.ChatEvent{{Type: "reasoning.delta", Content: said}, {Type: "message.start"}, {Type: "message.delta", Content: said}} {
				if err := p.show(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("the answer is %q, want %q", out.String(), tt.want)
			}
			if got, want := notes.String(), "a]0;titleb\n\tc31md\n"; got != want {
				t.Errorf("the thinking is %q, want %q", got, want)
			}
		})
	}
}

// answerOf is what a printer makes of a chat's events.
func answerOf(t *testing.T, isTerminal bool, events ...client.ChatEvent) (out, notes string) {
	t.Helper()
	var to, aside bytes.Buffer
	p := newAnswerPrinter(&to, &aside)
	p.terminal, p.colored = isTerminal, isTerminal
	for _, e := range events {
		if err := p.show(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	return to.String(), aside.String()
}

func TestAnswer_ThinkingIsForTerminals(t *testing.T) {
	t.Parallel()
	events := []client.ChatEvent{
		{Type: "chat.start"},
		{Type: "model_load.progress", Progress: 0.5},
		{Type: "reasoning.delta", Content: "Hm."},
		{Type: "message.delta", Content: "\n\n"},
		{Type: "message.delta", Content: "\nHi"},
		{Type: "message.delta", Content: " you"},
	}
	out, notes := answerOf(t, false, events...)
	if out != "Hi you\n" || notes != "" {
		t.Errorf("%q, %q", out, notes)
	}
	out, notes = answerOf(t, true, events...)
	if out != "Hi you\n" || !strings.Contains(notes, "loading the model 50%") || !strings.HasSuffix(notes, terminal.Dim+"Hm."+terminal.Plain+"\n") {
		t.Errorf("%q, %q", out, notes)
	}
	out, notes = answerOf(t, true, client.ChatEvent{Type: "reasoning.delta", Content: "Hm.\n"}, client.ChatEvent{Type: "message.delta", Content: "Hi\n"})
	if out != "Hi\n" || notes != terminal.Dim+"Hm.\n"+terminal.Plain {
		t.Errorf("%q, %q", out, notes)
	}
	if out, notes = answerOf(t, true); out+notes != "" {
		t.Errorf("nothing gives %q, %q", out, notes)
	}
}
