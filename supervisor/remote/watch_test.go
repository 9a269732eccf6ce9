package remote

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
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
			if after := again.Sub(begun); after < usualPace.pause {
				t.Errorf("it was asked again %v after the first time", after)
			}
			return
		default:
			w.Recheck()
			time.Sleep(time.Millisecond)
		}
	}
}

// A failure that a request sees wakes the watch, which asks at once and then every second, until the remote is back.
func TestWatch_AFailedRequestWakesIt(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		for _, peer := range []string{"", "a:1"} {
			if peer != "" && kind != KindLmcaddy {
				continue
			}
			t.Run(kind+peer, func(t *testing.T) {
				t.Parallel()
				var isDown atomic.Bool
				asked := make(chan struct{}, 64) // in vain
				far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if isDown.Load() {
						asked <- struct{}{}
						panic(http.ErrAbortHandler)
					}
					_, _ = io.WriteString(w, `{"data":[{"id":"m"}],"models":[{"key":"m","type":"llm"}],"version":"1","instances":[]}`)
				}))
				t.Cleanup(far.Close)
				far.Config.ErrorLog = log.New(io.Discard, "", 0)
				states := make(chan State, 64)
				w := NewWatch(serverOf(t, Config{Name: "r", URL: far.URL, Kind: kind, Peer: peer}), func(s State) { states <- s })
				t.Cleanup(w.Close)
				if s := <-states; s.Away != "" {
					t.Fatalf("at first: %+v", s)
				}
				isDown.Store(true)
				if w.Alive(t.Context()) == nil {
					t.Fatal("it is alive")
				}
				select {
				case s := <-states:
					if s.Away == "" {
						t.Errorf("when a request has failed: %+v", s)
					}
				default:
					t.Error("nobody is told before the request goes on")
				}
				for range 2 { // by the request, and at once
					<-asked
				}
				isDown.Store(false)
				select {
				case s := <-states:
					if s.Away != "" {
						t.Errorf("it is still away: %+v", s)
					}
				case <-time.After(10 * time.Second): // its list is asked for after 30
					t.Error("it isn't back soon after its return")
				}
			})
		}
	}
}

// A remote that lists its models but isn't healthy doesn't come back.
func TestWatch_OneThatOnlyListsItsModelsIsAway(t *testing.T) {
	t.Parallel()
	var isIll atomic.Bool
	asked := make(chan struct{}, 64)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" && isIll.Load() {
			asked <- struct{}{}
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	}))
	t.Cleanup(far.Close)
	states := make(chan State, 64)
	w := NewWatch(serverOf(t, Config{Name: "r", URL: far.URL, Kind: KindVLLM}), func(s State) { states <- s })
	t.Cleanup(w.Close)
	<-states
	isIll.Store(true)
	_ = w.Alive(t.Context())
	for range 3 { // by the request, at once, and after a second
		<-asked
	}
	if s, _ := w.State(); s.Away == "" || len(states) != 1 {
		t.Errorf("it is %+v, after %d changes", s, len(states))
	}
}
