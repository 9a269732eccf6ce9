package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/store"
)

// TestAsError_AFullDisk says so, and nothing of where the disk is.
func TestAsError_AFullDisk(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{store.ErrFull, syscall.ENOSPC} {
		c := &call{api: New(Config{Log: slog.New(slog.DiscardHandler)}), r: httptest.NewRequest(http.MethodGet, "/api/v1/usage", nil)}
		e := c.asError(fmt.Errorf("the store /home/x/lmcaddy.db: %w", cause))
		if e.Status() != http.StatusInsufficientStorage || !strings.Contains(e.Message, "disk is full") || strings.Contains(e.Message, "/home") {
			t.Errorf("%v: %d %s", cause, e.Status(), e.Message)
		}
	}
}
