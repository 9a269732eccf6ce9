package request

import (
	"slices"
	"testing"
)

// TestEngineIDs_ThatCollide: an id that another call of the request has is left to it.
func TestEngineIDs_ThatCollide(t *testing.T) {
	t.Parallel()
	var alone engineIDs
	taken := string(alone.of([]byte("call_1")))
	for name, order := range map[string][]string{"the hash comes later": {taken, "call_1"}, "the hash comes first": {"call_1", taken}} {
		var ids engineIDs
		var made []string
		for _, id := range append(order, order...) {
			made = append(made, string(ids.of([]byte(id))))
		}
		if made[0] != taken || made[1] == taken || !isEngineID([]byte(made[1])) || !slices.Equal(made[:2], made[2:]) {
			t.Errorf("%s: %q became %q", name, order, made)
		}
	}
}
