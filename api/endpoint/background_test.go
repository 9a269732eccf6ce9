package endpoint

import (
	"context"
	"testing"

	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
)

// The signs of life of one connection are no events of another's.
func TestLogWriter_OneFrameForEachEvent(t *testing.T) {
	t.Parallel()
	turn := &store.Turn{ID: "resp_1", Model: "tinychat", Status: store.InProgress}
	run, err := openNode(t).Runs.Start(t.Context(), turn, func(_ context.Context, run *runs.Run) {
		w := &logWriter{run: run}
		for _, written := range []string{"data: 0\n\ndata: 1\n\n", Comment, Comment + "data: 2\n\n" + Comment} {
			if n, err := w.Write([]byte(written)); n != len(written) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-run.Done()
	for from, want := range []string{"data: 0\n\ndata: 1\n\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n", "data: 2\n\n"} {
		if got, next, err := run.Follow(t.Context(), nil, from); string(got) != want || next != 3 || err != nil {
			t.Errorf("from %d: %q, %d, %v", from, got, next, err)
		}
	}
}
