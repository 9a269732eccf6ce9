package text

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// TestAsError_WhatTheSystemRefuses is told with what to do next, and without where it was.
func TestAsError_WhatTheSystemRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause  error
		status int
		code   string
		says   string
	}{
		"a full store":                  {store.ErrFull, http.StatusInsufficientStorage, "", "disk is full"},
		"a full disk":                   {syscall.ENOSPC, http.StatusInsufficientStorage, "", "disk is full"},
		"a quota":                       {syscall.EDQUOT, http.StatusInsufficientStorage, "", "quota"},
		"a limit of files' sizes":       {syscall.EFBIG, http.StatusInsufficientStorage, "", "disk is full"},
		"a locked store":                {store.ErrBusy, http.StatusServiceUnavailable, "store_busy", "another program"},
		"a store that is away":          {store.ErrUnavailable, http.StatusServiceUnavailable, "store_unavailable", "can't be used"},
		"no file descriptor":            {syscall.EMFILE, http.StatusServiceUnavailable, "too_many_open_files", "LimitNOFILE"},
		"no file descriptor for a load": {schedule.Error{Kind: schedule.NoFiles, Message: "x"}, http.StatusServiceUnavailable, "too_many_open_files", "ulimit -n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &endpoint.Call{Dialect: plainDialect, Site: endpoint.NewSite(endpoint.Config{Log: slog.New(slog.DiscardHandler)}), Request: httptest.NewRequest(http.MethodGet, "/api/v1/usage", nil)}
			located := fmt.Errorf("the store /home/x/lmcaddy.db: %w", tt.cause)
			errs := []error{located}
			if _, isLoad := tt.cause.(schedule.Error); !isLoad { //nolint:errorlint // it is as it stands above
				errs = append(errs, NotStored(c, located))
			}
			for _, err := range errs {
				e := c.Error(err)
				if e.Status() != tt.status || !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message, "/home") {
					t.Errorf("%d %s", e.Status(), e.Message)
				}
			}
			if e := c.Error(tt.cause); e.Code != tt.code {
				t.Errorf("the code is %q", e.Code)
			}
		})
	}
}

// TestNotAnswered_WithoutFileDescriptors: the engine wasn't even asked, so it isn't to blame.
func TestNotAnswered_WithoutFileDescriptors(t *testing.T) {
	t.Parallel()
	c := &endpoint.Call{Dialect: plainDialect, Site: endpoint.NewSite(endpoint.Config{Log: slog.New(slog.DiscardHandler)}), Request: httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)}
	err := (&Request{Call: c}).unanswered(t.Context(), nil, &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}})
	if _, broken := errors.AsType[*engineLost](err); broken {
		t.Error("it is taken for the engine's failure")
	}
	if e := c.Error(err); e.Status() != http.StatusServiceUnavailable || e.Code != "too_many_open_files" || e.RetryAfter == 0 {
		t.Errorf("%d %s %s", e.Status(), e.Code, e.RetryAfter)
	}
}
