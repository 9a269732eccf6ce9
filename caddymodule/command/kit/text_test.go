package kit

import (
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		columns    int
		line, want string
	}{
		{5, "äöüäö", "äöüäö"},
		{5, "äöüäöü", "äöüä…"},
		{1, "ab", "…"},
		{0, strings.Repeat("x", longestNote), strings.Repeat("x", longestNote)},
		{0, strings.Repeat("x", longestNote+1), strings.Repeat("x", longestNote-1) + "…"},
	} {
		if got := Cut(tt.line, tt.columns); got != tt.want {
			t.Errorf("%q in %d: %q", tt.line, tt.columns, got)
		}
	}
}
