package request

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
)

func TestReadImage(t *testing.T) {
	t.Parallel()
	data, err := base64.StdEncoding.DecodeString(testkit.Pixel)
	if err != nil {
		t.Fatal(err)
	}
	want := &translate.Media{Type: "image/png", Data: data}
	alphabet := strings.NewReplacer("+", "-", "/", "_")
	unpadded := strings.TrimRight(testkit.Pixel, "=")
	for given, want := range map[string]*translate.Media{
		"data:image/png;base64," + testkit.Pixel:                        want,
		"DATA:IMAGE/JPEG;BASE64," + testkit.Pixel:                       want, // it is what it is
		"data:image/png;base64," + unpadded:                             want,
		"data:image/png;charset=utf-8;base64," + testkit.Pixel:          want,
		"data:image/vnd.ms-photo;base64,iVBO\r\n" + testkit.Pixel[4:]:   want,
		"data:image/png;base64, " + unpadded[:9] + " \t" + unpadded[9:]: want,
		"data:;base64," + testkit.Pixel:                                 want,
		"data:," + testkit.Pixel:                                        want,
		"data:image/;base64," + testkit.Pixel:                           want,
		"data:text/plain;base64," + testkit.Pixel:                       want,
		"data:application/octet-stream;base64," + testkit.Pixel:         want,
		"data:video/mp4;base64," + testkit.Pixel:                        want,
		`data:image/a"}};base64,` + testkit.Pixel:                       want,
		"data:image/png;base64," + alphabet.Replace(testkit.Pixel):      want,
		"data:image/png;base64," + alphabet.Replace(unpadded):           want,
		"data:image/png;base64," + url.QueryEscape(testkit.Pixel):       want,
		"":                          nil,
		testkit.Pixel:               nil,
		"data:image/png;base64":     nil,
		"https://example.org/a.png": nil,
		"file:///etc/passwd":        nil,
		"xdata:image/png;base64," + testkit.Pixel: nil,
	} {
		got, err := new(MediaReader).Read(MediumImage, "input[0].data_url", []byte(given))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", given, diff)
		}
		if want == nil && (err == nil || err.Code != "invalid_image_url" || err.Param != "input[0].data_url") {
			t.Errorf("%q: %+v", given, err)
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
		"a piece":          {testkit.Pixel[:40], `"x" holds an image that is damaged, or of a variant that this server can't read.`},
		"too many bytes":   {strings.Repeat("AAAA", 10<<20), `"x" holds an image that is larger than 20 MiB: send a smaller one.`},
		"too many pixels":  {strings.TrimPrefix(testkit.PNG(t, 64_001, 1000), head), `"x" holds an image that is 64001 pixels wide and 1000 high, and may have no more than 64 million pixels as a PNG file.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := new(MediaReader).Read(MediumImage, "x", []byte(head+tt.encoded))
			if diff := cmp.Diff(translate.Invalid("invalid_image", "x", tt.message), err); diff != "" {
				t.Error(diff)
			}
		})
	}
}
