package servers

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPool_Counts(t *testing.T) {
	t.Parallel()
	p := newPool(t, map[string]any{"program": program("library")})
	s := plugin(t, p, "program")
	for _, tool := range []string{"echo", "fail", "grow", "nothing"} {
		if _, err := s.Call(t.Context(), tool, []byte(`{"text":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Call(cancelled, "echo", []byte(`{"text":"x"}`)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.Release()
	want := []Count{{Server: "program", OK: 2, Errors: 2, Connections: 1}}
	got := p.Counts()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Count{}, "Seconds")); diff != "" || got[0].Seconds <= 0 {
		t.Errorf("%v s (-want +got):\n%s", got, diff)
	}
}
