package native

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// TestNativeStream_ALoadIsNotToldOfAfterAFailure: the stream has its end then, or there is none.
func TestNativeStream_ALoadIsNotToldOfAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &run{}
		c := endpoint.NewCall(endpoint.NewSite(endpoint.Config{Log: slog.New(slog.DiscardHandler)}), Dialect, httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/chat", nil))
		r.Loop = &text.Loop{Run: &text.Run{Call: c, Stream: c.NewStream()}, Writer: r, Output: &r.out}
		defer r.Stream.Close()
		loading, failure := make(chan supervisor.Progress), errors.New("the load failed")
		err := r.whileLoading(loading, func() error {
			loading <- supervisor.Progress{Instance: "tinychat", Loaded: 0.5}
			return failure
		})
		synctest.Wait()
		select {
		case loading <- supervisor.Progress{Instance: "tinychat", Loaded: 0.7}:
			t.Error("it is told of")
		default:
		}
		if !errors.Is(err, failure) || !r.out.Begun() {
			t.Errorf("%v, begun %v", err, r.out.Begun())
		}
	})
}
