package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// kindNames are in the order of the constants.
var kindNames = [...]string{
	translate.KindInternal: "internal", translate.KindInvalid: "invalid", translate.KindNotImplemented: "not implemented", translate.KindContextOverflow: "context overflow",
	translate.KindModelNotFound: "model not found", translate.KindResponseNotFound: "response not found", translate.KindPathNotFound: "path not found", translate.KindMethodNotAllowed: "method not allowed",
	translate.KindTooLarge: "too large", translate.KindUnsupportedEncoding: "unsupported encoding", translate.KindQueueFull: "queue full",
	translate.KindEngineFailed: "engine failed", translate.KindUnavailable: "unavailable", translate.KindStalled: "stalled",
	translate.KindForbidden: "forbidden", translate.KindUnauthorized: "unauthorized", translate.KindRateLimited: "rate limited", translate.KindConflict: "conflict", translate.KindJobNotFound: "job not found", translate.KindHubFailed: "hub failed",
	translate.KindHubBusy: "hub busy", translate.KindDiskFull: "disk full",
	translate.KindMCPFailed: "mcp failed", translate.KindPluginFailed: "plugin failed",
}

// TestError_Envelopes compares errors of each kind in each dialect, including headers, with a golden file.
func TestError_Envelopes(t *testing.T) {
	t.Parallel()
	if len(kindNames) != int(translate.Kinds) {
		t.Fatalf("%d kinds are tested, but there are %d", len(kindNames), int(translate.Kinds))
	}
	var table bytes.Buffer
	for kind, name := range kindNames {
		e := &translate.Error{Kind: translate.Kind(kind), Message: "What is wrong, and what to do."}
		fmt.Fprintf(&table, "%s: %d%s\n", name, e.Status(), headerLines(e))
		for _, d := range []translate.Dialect{native.Errors{}, openai.Errors{}, anthropic.Errors{}, ollama.Errors{}} {
			fmt.Fprintf(&table, "  %s\n", d.AppendError(nil, e, "req_1"))
		}
	}
	testkit.Golden(t, "testdata/errors.golden", table.Bytes())
}

func headerLines(e *translate.Error) string {
	h := http.Header{}
	e.Header(h)
	var lines bytes.Buffer
	for _, name := range []string{"Retry-After", "X-Should-Retry"} {
		if v := h.Get(name); v != "" {
			fmt.Fprintf(&lines, ", %s: %s", name, v)
		}
	}
	return lines.String()
}

func TestDialect_Append(t *testing.T) {
	t.Parallel()
	full := &translate.Error{Kind: translate.KindInvalid, Code: "invalid_value", Param: "reasoning", Message: `"reasoning" must be <on> & "off".`}
	bare := &translate.Error{Kind: translate.KindInvalid, Message: "Something is wrong."}
	tests := map[string]struct {
		dialect translate.Dialect
		err     *translate.Error
		id      string
		want    string
	}{
		"native":    {native.Errors{}, full, "req_1", `{"error":{"type":"invalid_request","message":"\"reasoning\" must be <on> & \"off\".","code":"invalid_value","param":"reasoning"}}`},
		"OpenAI":    {openai.Errors{}, full, "req_1", `{"error":{"message":"\"reasoning\" must be <on> & \"off\".","type":"invalid_request_error","param":"reasoning","code":"invalid_value"}}`},
		"Anthropic": {anthropic.Errors{}, full, "req_1", `{"type":"error","error":{"type":"invalid_request_error","message":"\"reasoning\" must be <on> & \"off\"."},"request_id":"req_1"}`},

		"Ollama": {ollama.Errors{}, full, "req_1", `{"error":"\"reasoning\" must be <on> & \"off\"."}`},

		"native, bare":            {native.Errors{}, bare, "", `{"error":{"type":"invalid_request","message":"Something is wrong."}}`},
		"OpenAI has all its keys": {openai.Errors{}, bare, "", `{"error":{"message":"Something is wrong.","type":"invalid_request_error","param":null,"code":null}}`},
		"Anthropic without an id": {anthropic.Errors{}, bare, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Something is wrong."},"request_id":null}`},

		"the code of its own comes first": {
			openai.Errors{},
			&translate.Error{Kind: translate.KindModelNotFound, Code: "model_not_loaded", Param: "model", Message: "No."}, "",
			`{"error":{"message":"No.","type":"invalid_request_error","param":"model","code":"model_not_loaded"}}`,
		},
		"bytes that aren't UTF-8": {openai.Errors{}, &translate.Error{Kind: translate.KindInternal, Message: "a\xffb"}, "", `{"error":{"message":"a\ufffdb","type":"server_error","param":null,"code":"internal_error"}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.dialect.AppendError([]byte("before "), tt.err, tt.id)
			if diff := cmp.Diff("before "+tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !json.Valid(bytes.TrimPrefix(got, []byte("before "))) {
				t.Error("it is not JSON")
			}
		})
	}
}

func TestError_Header(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  *translate.Error
		want http.Header
	}{
		"no advice":              {&translate.Error{Kind: translate.KindInvalid}, http.Header{}},
		"a second":               {&translate.Error{Kind: translate.KindQueueFull, RetryAfter: time.Second}, http.Header{"Retry-After": {"1"}}},
		"rounded up":             {&translate.Error{Kind: translate.KindQueueFull, RetryAfter: time.Second + 1}, http.Header{"Retry-After": {"2"}}},
		"less than a second":     {&translate.Error{Kind: translate.KindQueueFull, RetryAfter: 1}, http.Header{"Retry-After": {"1"}}},
		"a minute and a half":    {&translate.Error{Kind: translate.KindQueueFull, RetryAfter: 90 * time.Second}, http.Header{"Retry-After": {"90"}}},
		"not told":               {&translate.Error{Kind: translate.KindQueueFull}, http.Header{}},
		"below zero":             {&translate.Error{Kind: translate.KindQueueFull, RetryAfter: -time.Second}, http.Header{}},
		"it would fail again":    {&translate.Error{Kind: translate.KindUnavailable}, http.Header{"X-Should-Retry": {"false"}}},
		"a fault of ours":        {&translate.Error{Kind: translate.KindInternal}, http.Header{"X-Should-Retry": {"false"}}},
		"another engine may do":  {&translate.Error{Kind: translate.KindEngineFailed}, http.Header{}},
		"it may not stall again": {&translate.Error{Kind: translate.KindStalled}, http.Header{}},
		"a time to come back": {
			&translate.Error{Kind: translate.KindUnavailable, Code: "shutting_down", RetryAfter: 5 * time.Second}, http.Header{"Retry-After": {"5"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			tt.err.Header(h)
			if diff := cmp.Diff(tt.want, h); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
