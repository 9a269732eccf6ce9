package endpoint

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestStream_ACommentIsNoAnswer: it is sent while a prompt is long, and the request may be sent again after it.
func TestStream_ACommentIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	c := NewCall(NewSite(Config{}), &Dialect{Stream: ServerSent}, w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
	stream := c.NewStream()
	if stream.Send([]byte(":\n\n")); stream.Sent || !stream.headed {
		t.Errorf("after a comment: sent %t, header %t", stream.Sent, stream.headed)
	}
	if stream.Send([]byte("data: {}\n\n")); !stream.Sent || w.Body.String() != ":\n\ndata: {}\n\n" {
		t.Errorf("after an event: sent %t, %q", stream.Sent, w.Body)
	}
}
