package node

import "testing"

func TestSettings_ResolveTakesTheClosestAlias(t *testing.T) {
	t.Parallel()
	s := Settings{Models: map[string]ModelSettings{
		"p/any":   {Aliases: []string{"gpt-*"}},
		"p/four":  {Aliases: []string{"gpt-4*"}},
		"p/minis": {Aliases: []string{"*-mini"}},
		"p/exact": {Aliases: []string{"gpt-4o"}},
	}}
	for range 50 { // a map has no order
		for name, want := range map[string]string{
			"gpt-3": "p/any", "gpt-4.1": "p/four", "gpt-4o": "p/exact", "gpt-4-mini": "p/minis", "o1-mini": "p/minis", "p/any": "p/any", "claude": "claude",
		} {
			if got := s.resolve(name); got != want {
				t.Fatalf("%s: %s, want %s", name, got, want)
			}
		}
	}
}
