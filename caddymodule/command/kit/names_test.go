package kit

import (
	"testing"
)

func TestHasAlias(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"gpt-4o": true, "claude-opus": true, "claude/opus": false, "gpt": false, "": false} {
		if got := HasAlias([]string{"gpt-4o", "claude-*"}, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
