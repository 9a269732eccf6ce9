package request

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// pngURL is an image of so many pixels as a data URL.
func pngURL(tb testing.TB, width, height int) string {
	tb.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		tb.Fatal(err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestReadImage(t *testing.T) {
	t.Parallel()
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	want := &translate.Image{Type: "image/png", Data: data}
	unpadded := strings.TrimRight(pixel, "=")
	for url, want := range map[string]*translate.Image{
		"data:image/png;base64," + pixel:                      want,
		"DATA:IMAGE/JPEG;BASE64," + pixel:                     want, // it is what it is
		"data:image/png;base64," + unpadded:                   want,
		"data:image/png;charset=utf-8;base64," + pixel:        want,
		"data:image/vnd.ms-photo;base64,iVBO\r\n" + pixel[4:]: want,
		"":                                   nil,
		pixel:                                nil,
		"data:image/png," + pixel:            nil,
		"data:image/png;base64":              nil,
		"data:;base64," + pixel:              nil,
		"data:image/;base64," + pixel:        nil,
		"data:text/plain;base64," + pixel:    nil,
		"data:video/mp4;base64," + pixel:     nil,
		"https://example.org/a.png":          nil,
		"file:///etc/passwd":                 nil,
		`data:image/a"}};base64,` + pixel:    nil,
		"data:image/a\n;base64," + pixel:     nil,
		"xdata:image/png;base64," + pixel:    nil,
		"data:a/b;image/png;base64," + pixel: nil,
	} {
		got, err := new(Images).Read("input[0].data_url", url)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", url, diff)
		}
		if want == nil && (err == nil || err.Code != "invalid_image_url" || err.Param != "input[0].data_url") {
			t.Errorf("%q: %+v", url, err)
		}
	}
}

func TestReadImage_OnlyPictures(t *testing.T) {
	t.Parallel()
	const head = "data:image/png;base64,"
	for name, tt := range map[string]struct{ encoded, message string }{
		"nothing":          {"", `"x" holds no valid base64.`},
		"no base64":        {"*", `"x" holds no valid base64.`},
		"half a character": {"A", `"x" holds no valid base64.`},
		"a film":           {base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x20ftypisom")), `"x" holds an image that is not a PNG, JPEG, GIF, BMP or WebP file.`},
		"a piece":          {pixel[:40], `"x" holds an image that is damaged, or of a variant that this server can't read.`},
		"too many bytes":   {strings.Repeat("AAAA", 10<<20), `"x" holds an image that is larger than 20 MiB: send a smaller one.`},
		"too many pixels":  {strings.TrimPrefix(pngURL(t, 64_001, 1000), head), `"x" holds an image that is 64001 pixels wide and 1000 high, and may have no more than 64 million pixels as a PNG file.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := new(Images).Read("x", head+tt.encoded)
			if diff := cmp.Diff(translate.Invalid("invalid_image", "x", tt.message), err); diff != "" {
				t.Error(diff)
			}
		})
	}
}
