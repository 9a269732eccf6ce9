package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kindNames are in the order of the constants.
var kindNames = [...]string{
	KindInternal: "internal", KindInvalid: "invalid", KindNotImplemented: "not implemented", KindContextOverflow: "context overflow",
	KindModelNotFound: "model not found", KindResponseNotFound: "response not found", KindPathNotFound: "path not found", KindMethodNotAllowed: "method not allowed",
	KindTooLarge: "too large", KindUnsupportedEncoding: "unsupported encoding", KindQueueFull: "queue full",
	KindEngineFailed: "engine failed", KindUnavailable: "unavailable", KindStalled: "stalled",
	KindForbidden: "forbidden", KindUnauthorized: "unauthorized", KindRateLimited: "rate limited", KindConflict: "conflict", KindJobNotFound: "job not found", KindHubFailed: "hub failed",
	KindHubBusy: "hub busy", KindDiskFull: "disk full",
}

// TestError_Envelopes keeps what each kind looks like in each dialect, headers included.
func TestError_Envelopes(t *testing.T) {
	t.Parallel()
	if len(kindNames) != len(kinds) {
		t.Fatalf("%d kinds are tested, but there are %d", len(kindNames), len(kinds))
	}
	var table bytes.Buffer
	for kind, name := range kindNames {
		e := &Error{Kind: Kind(kind), Message: "What is wrong, and what to do."}
		fmt.Fprintf(&table, "%s: %d%s\n", name, e.Status(), headerLines(e))
		for _, d := range []Dialect{NativeErrors{}, OpenAIErrors{}, AnthropicErrors{}} {
			fmt.Fprintf(&table, "  %s\n", d.AppendError(nil, e, "req_1"))
		}
	}
	golden(t, "testdata/errors.golden", table.Bytes())
}

func headerLines(e *Error) string {
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
	full := &Error{Kind: KindInvalid, Code: "invalid_value", Param: "reasoning", Message: `"reasoning" must be <on> & "off".`}
	bare := &Error{Kind: KindInvalid, Message: "Something is wrong."}
	tests := map[string]struct {
		dialect Dialect
		err     *Error
		id      string
		want    string
	}{
		"native":    {NativeErrors{}, full, "req_1", `{"error":{"type":"invalid_request","message":"\"reasoning\" must be <on> & \"off\".","code":"invalid_value","param":"reasoning"}}`},
		"OpenAI":    {OpenAIErrors{}, full, "req_1", `{"error":{"message":"\"reasoning\" must be <on> & \"off\".","type":"invalid_request_error","param":"reasoning","code":"invalid_value"}}`},
		"Anthropic": {AnthropicErrors{}, full, "req_1", `{"type":"error","error":{"type":"invalid_request_error","message":"\"reasoning\" must be <on> & \"off\"."},"request_id":"req_1"}`},

		"native, bare":            {NativeErrors{}, bare, "", `{"error":{"type":"invalid_request","message":"Something is wrong."}}`},
		"OpenAI has all its keys": {OpenAIErrors{}, bare, "", `{"error":{"message":"Something is wrong.","type":"invalid_request_error","param":null,"code":null}}`},
		"Anthropic without an id": {AnthropicErrors{}, bare, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Something is wrong."},"request_id":null}`},

		"the code of its own comes first": {
			OpenAIErrors{}, &Error{Kind: KindModelNotFound, Code: "model_not_loaded", Param: "model", Message: "No."}, "",
			`{"error":{"message":"No.","type":"invalid_request_error","param":"model","code":"model_not_loaded"}}`,
		},
		"bytes that aren't UTF-8": {OpenAIErrors{}, &Error{Kind: KindInternal, Message: "a\xffb"}, "", `{"error":{"message":"a\ufffdb","type":"server_error","param":null,"code":"internal_error"}}`},
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
		err  *Error
		want http.Header
	}{
		"no advice":              {&Error{Kind: KindInvalid}, http.Header{}},
		"a second":               {&Error{Kind: KindQueueFull, RetryAfter: time.Second}, http.Header{"Retry-After": {"1"}}},
		"rounded up":             {&Error{Kind: KindQueueFull, RetryAfter: time.Second + 1}, http.Header{"Retry-After": {"2"}}},
		"less than a second":     {&Error{Kind: KindQueueFull, RetryAfter: 1}, http.Header{"Retry-After": {"1"}}},
		"a minute and a half":    {&Error{Kind: KindQueueFull, RetryAfter: 90 * time.Second}, http.Header{"Retry-After": {"90"}}},
		"not told":               {&Error{Kind: KindQueueFull}, http.Header{}},
		"below zero":             {&Error{Kind: KindQueueFull, RetryAfter: -time.Second}, http.Header{}},
		"it would fail again":    {&Error{Kind: KindUnavailable}, http.Header{"X-Should-Retry": {"false"}}},
		"a fault of ours":        {&Error{Kind: KindInternal}, http.Header{"X-Should-Retry": {"false"}}},
		"another engine may do":  {&Error{Kind: KindEngineFailed}, http.Header{}},
		"it may not stall again": {&Error{Kind: KindStalled}, http.Header{}},
		"a time to come back": {
			&Error{Kind: KindUnavailable, Code: "shutting_down", RetryAfter: 5 * time.Second}, http.Header{"Retry-After": {"5"}},
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
