package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tidwall/gjson"
)

// TestListing_FollowsNames that models are given and lose while the server runs.
func TestListing_FollowsNames(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for i, want := range []string{"", `["copy"]`, ""} {
		if got := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0.aliases").Raw; got != want {
			t.Errorf("listing %d has the names %s, want %s", i, got, want)
		}
		switch i {
		case 0:
			expect(t, s.do("POST", "/api/copy", `{"source":"tinychat","destination":"copy"}`), 200, nil)
		case 1:
			expect(t, s.do("DELETE", "/api/delete", `{"model":"copy"}`), 200, nil)
		}
	}
}

// TestListing_InPieces is whole, the first time and from the cache.
func TestListing_InPieces(t *testing.T) {
	t.Parallel()
	const n = 300 // several pieces
	a := apiOfMany(t, n)
	list := func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1/api/v1/models", nil))
		return w
	}
	first, again, head := list(http.MethodGet), list(http.MethodGet), list(http.MethodHead)
	body := first.Body.String()
	if len(body) < 2*64<<10 || !gjson.Valid(body) || first.Header().Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("%d bytes, header %v", len(body), first.Header())
	}
	keys := map[string]bool{}
	for _, key := range gjson.Get(body, "models.#.key").Array() {
		keys[key.Str] = true
	}
	if len(keys) != n {
		t.Errorf("%d models, want %d", len(keys), n)
	}
	if again.Body.String() != body {
		t.Error("the second listing differs from the first")
	}
	if head.Body.Len() != 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("HEAD: %d bytes, header %v", head.Body.Len(), head.Header())
	}
}
