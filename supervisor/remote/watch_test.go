package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestWatch_AsksNotTooOften: requests that a remote refuses don't have it asked for its models again and again.
func TestWatch_AsksNotTooOften(t *testing.T) {
	t.Parallel()
	asked := make(chan time.Time, 1000)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			asked <- time.Now()
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	}))
	t.Cleanup(far.Close)
	states := make(chan State, 1000)
	begun := time.Now()
	w := NewWatch(serverOf(t, Config{Name: "r", URL: far.URL, Kind: KindVLLM}), func(s State) { states <- s })
	t.Cleanup(w.Close)
	<-states
	<-asked
	for {
		select {
		case again := <-asked: // in the end
			if after := again.Sub(begun); after < listPause {
				t.Errorf("it was asked again %v after the first time", after)
			}
			return
		default:
			w.Recheck()
			time.Sleep(time.Millisecond)
		}
	}
}
