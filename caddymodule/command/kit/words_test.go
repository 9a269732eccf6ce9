package kit

import "testing"

func TestInDays(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]string{"2w": "14d", "30d": "30d", "12h": "12h", "": "", "w": "w", "1.5w": "1.5w", "-1w": "-7d"} {
		if got := InDays(age); got != want {
			t.Errorf("%q: %q", age, got)
		}
	}
}
