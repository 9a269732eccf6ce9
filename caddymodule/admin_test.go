package caddymodule

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

func TestAdmin_Errors(t *testing.T) {
	t.Parallel()
	all := func() (resource.Overview, error) { return manage.DescribeOverview(everything(), nil, noon), nil }
	for name, tt := range map[string]struct {
		method   string
		overview func() (resource.Overview, error)
		status   int // 0: no error
	}{
		"all well":        {http.MethodGet, all, 0},
		"read-only":       {http.MethodPost, all, http.StatusMethodNotAllowed},
		"still starting":  {http.MethodGet, func() (resource.Overview, error) { return resource.Overview{}, errNotServing }, http.StatusServiceUnavailable},
		"no model server": {http.MethodGet, activeOverview, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			var refused caddy.APIError
			err := servePS(w, httptest.NewRequestWithContext(t.Context(), tt.method, psPath, nil), tt.overview)
			if errors.As(err, &refused); refused.HTTPStatus != tt.status || (err == nil) != (tt.status == 0) {
				t.Errorf("error %v with status %d, want %d", err, refused.HTTPStatus, tt.status)
			}
			if allow := w.Header().Get("Allow"); (allow != "") != (tt.status == http.StatusMethodNotAllowed) {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}
