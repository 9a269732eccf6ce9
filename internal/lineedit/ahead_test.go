package lineedit

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

func TestTypedAhead(t *testing.T) {
	t.Parallel()
	enter := tea.KeyPressMsg{Code: tea.KeyEnter}
	for typed, want := range map[string][]tea.Msg{
		"":                                       nil,
		"\n\n":                                   nil,
		"one":                                    {tea.PasteMsg{Content: "one"}},
		"one\n":                                  {tea.PasteMsg{Content: "one"}, enter},
		"one\ntwo\n":                             {tea.PasteMsg{Content: "one\ntwo"}, enter},
		"onf\x7fe\x1b[A 世\r":                     {tea.PasteMsg{Content: "one 世"}, enter},
		"\x7f\x1b[200~a\tb\r\nc\n\x1b[201~":      {tea.PasteMsg{Content: "a\tb\n\nc"}},
		"\x1b[200~a\nb\x1b[201~ of it\n":         {tea.PasteMsg{Content: "a\nb of it"}, enter},
		"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~": {tea.PasteMsg{Content: "ab"}},
		"\x04":                                   {tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}},
		"x\x04":                                  {tea.PasteMsg{Content: "x"}},
	} {
		if diff := cmp.Diff(want, typedAhead(typed)); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", typed, diff)
		}
	}
}
