package command

import (
	"bytes"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/client"
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
