package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestWatch_AsksNotTooOften: requests that a remote refuses don't have it asked for its models again and again.
func TestWatch_AsksNotTooOften(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			asked.Add(1)
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	}))
	t.Cleanup(far.Close)
	states := make(chan State, 1000)
	w := NewWatch(serverOf(t, Config{Name: "r", URL: far.URL, Kind: KindVLLM}), func(s State) { states <- s })
	t.Cleanup(w.Close)
	<-states
	for begun := time.Now(); time.Since(begun) < listPause/2; time.Sleep(time.Millisecond) {
		w.Recheck()
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times within half a second", n)
	}
	<-states // it is asked in the end
	if n := asked.Load(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}
