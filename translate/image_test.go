package translate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// The number of images and of pixels in a request is limited in either dialect.
func TestImages_Together(t *testing.T) {
	t.Parallel()
	large := testkit.PNG(t, 8000, 8000)
	for name, tt := range map[string]struct {
		url     string
		number  int
		message string
	}{
		"as many as may be": {"data:image/png;base64," + testkit.Pixel, 64, ""},
		"too many":          {"data:image/png;base64," + testkit.Pixel, 64 + 1, "is one of more than 64 images: send fewer in one request."},
		"too many pixels":   {large, 5, "holds an image with which the request's images have more than 256 million pixels together: send smaller or fewer images."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := strings.Repeat(`,{"type":"image","data_url":"`+tt.url+`"}`, tt.number)
			body, err := jsonbody.Scan([]byte(`{"model":"m","input":[` + parts[1:] + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = native.ParseChat(body, "m", capsOf(request.Caps{Vision: true}))
			check(t, err, "input["+strconv.Itoa(tt.number-1)+"].data_url", tt.message)

			blocks := strings.Repeat(`,{"type":"image","source":{"type":"url","url":"`+tt.url+`"}}`, tt.number)
			body, err = jsonbody.Scan([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + blocks[1:] + `]}]}`))
			if err != nil {
				t.Fatal(err)
			}
			_, err = anthropic.ParseMessages(body, capsOf(request.Caps{Vision: true}))
			check(t, err, "messages.0.content."+strconv.Itoa(tt.number-1)+".source.url", tt.message)
		})
	}
}

func check(t *testing.T, got *translate.Error, where, message string) {
	t.Helper()
	var want *translate.Error
	if message != "" {
		want = translate.Invalid("invalid_image", where, `"`+where+`" `+message)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestImages_AreWhatTheirBytesSay, in every dialect, whatever a URL says of them.
func TestImages_AreWhatTheirBytesSay(t *testing.T) {
	t.Parallel()
	parsers := endpointParsers()
	for endpoint, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"URL"}}]}]}`,
		"/v1/responses":        `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"URL"}]}]}`,
		"/v1/messages":         `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"application/octet-stream","data":"URL"}}]}]}`,
		"/v1/messages url":     `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"URL"}}]}]}`,
		"/api/chat":            `{"messages":[{"role":"user","content":"a","images":["URL"]}]}`,
		"/api/generate":        `{"prompt":"a","images":["URL"]}`,
		"/api/v1/chat":         `{"input":[{"type":"image","data_url":"URL"}]}`,
	} {
		path, _, _ := strings.Cut(endpoint, " ")
		for url, code := range map[string]string{
			"data:image/png;base64," + testkit.Pixel:                "",
			"DATA:;BASE64," + testkit.Pixel:                         "",
			"data:application/octet-stream;base64," + testkit.Pixel: "",
			"data:image/png;base64,JVBERi0xLjcK":                    "invalid_image",
		} {
			got := ""
			if err := parsers[path](testkit.Scan(t, strings.Replace(body, "URL", url, 1))); err != nil {
				got = err.Code
			}
			if got != code {
				t.Errorf("%s %.40s: %q, want %q", endpoint, url, got, code)
			}
		}
	}
}
