package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// withVision returns a home with a model that names colours.
func withVision(t *testing.T) *harness.Home {
	t.Helper()
	home := harness.NewHome(t)
	for _, file := range []string{"tinyvision-q4_0.gguf", "mmproj-tinyvision-f16.gguf"} {
		content, err := os.ReadFile(filepath.Join("..", "testdata", "models", filepath.FromSlash(visionModel), file))
		if err != nil {
			t.Fatal(err)
		}
		home.AddModel(visionModel, file, content)
	}
	return home
}

// red returns a picture of one colour in each format.
func red(t *testing.T) map[string][]byte {
	t.Helper()
	const side = 64
	img := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.RGBA{R: 255, A: 255}})
	draw.Draw(img, img.Bounds(), image.NewUniform(img.Palette[0]), image.Point{}, draw.Src)
	files := map[string][]byte{}
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	le := binary.LittleEndian
	bmp := le.AppendUint32(le.AppendUint32(le.AppendUint32([]byte("BM"), 54+side*side*3), 0), 54)
	bmp = le.AppendUint32(le.AppendUint32(le.AppendUint32(bmp, 40), side), side)
	bmp = append(le.AppendUint16(le.AppendUint16(bmp, 1), 24), make([]byte, 24)...)
	files["bmp"] = append(bmp, bytes.Repeat([]byte{0, 0, 255}, side*side)...)

	// Lossless WebP: after the sizes, each channel has a code with one symbol, so the pixels take no bits.
	var bits uint64
	at := 3 // no transforms, no cache, one set of codes
	for _, symbol := range []uint64{0, 255, 0, 255, 0} {
		bits |= (0b101 | symbol<<3) << at
		at += 11
	}
	vp8l := le.AppendUint64(le.AppendUint32([]byte{0x2f}, side-1|(side-1)<<14), bits)
	vp8l = append(vp8l, 0)
	webp := le.AppendUint32([]byte("RIFF"), uint32(12+len(vp8l)))
	files["webp"] = append(le.AppendUint32(append(webp, "WEBPVP8L"...), uint32(len(vp8l))), vp8l...)
	return files
}

// TestImages_EveryFormatIsSeen: the model names the colour in each format, whichever media type the request gives.
func TestImages_EveryFormatIsSeen(t *testing.T) {
	t.Parallel()
	s := harness.Start(withVision(t), harness.Config{})
	for name, file := range red(t) {
		t.Run(name, func(t *testing.T) {
			encoded := base64.StdEncoding.EncodeToString(file)
			body := s.NativeChat(harness.NativeAsk("").With("model", visionModel).With("input", []any{
				harness.Fields{"type": "text", "content": "Say:"},
				harness.Fields{"type": "image", "data_url": "data:image/png;base64," + encoded},
			}))
			wantSaid(t, body, "red")
			reply := s.Post("/v1/messages", harness.Fields{
				"model": visionModel, "max_tokens": 20, "temperature": 0,
				"messages": []any{harness.Fields{"role": "user", "content": []any{
					harness.Fields{"type": "text", "text": "Say:"},
					harness.Fields{"type": "image", "source": harness.Fields{"type": "base64", "media_type": "image/" + name, "data": encoded}},
				}}},
			}).Want(t, http.StatusOK)
			if said := reply.Get(`content.#(type=="text").text`).Str; !strings.Contains(said, "red") {
				t.Errorf("as a message: %s", reply.Body)
			}
		})
	}
}

// TestImages_NothingElseReachesTheEngine: anything but a picture is refused before a model is loaded.
func TestImages_NothingElseReachesTheEngine(t *testing.T) {
	t.Parallel()
	s := harness.Start(withVision(t), harness.Config{})
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), 100_000), 100_000)
	header = append(header, 8, 2, 0, 0, 0)
	huge := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), binary.BigEndian.AppendUint32(header, crc32.ChecksumIEEE(header))...)
	for name, file := range map[string][]byte{
		"random bytes":     []byte("\xd3\x1f\x07 random bytes"),
		"a film":           []byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"),
		"a playlist":       []byte("#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:1/\n"),
		"a drawing":        []byte(`<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:1/"/></svg>`),
		"too many pixels":  huge,
		"half of a file":   red(t)["png"][:60],
		"a folder of many": append([]byte("PK\x03\x04"), red(t)["png"]...),
	} {
		t.Run(name, func(t *testing.T) {
			encoded := base64.StdEncoding.EncodeToString(file)
			for path, request := range map[string]harness.Fields{
				harness.NativeChatPath: harness.NativeAsk("").With("model", visionModel).With("input", []any{
					harness.Fields{"type": "image", "data_url": "data:image/png;base64," + encoded},
				}),
				"/v1/messages": {"model": visionModel, "max_tokens": 20, "messages": []any{harness.Fields{"role": "user", "content": []any{
					harness.Fields{"type": "image", "source": harness.Fields{"type": "base64", "media_type": "image/png", "data": encoded}},
				}}}},
			} {
				if reply := s.Post(path, request).Want(t, http.StatusBadRequest); !strings.Contains(reply.Body, "holds an image that is") {
					t.Errorf("%s: %s", path, reply.Body)
				}
			}
		})
	}
	if loaded := s.Get("/api/v1/models").Want(t, http.StatusOK).Get(`models.#.loaded_instances.0`).Array(); len(loaded) > 0 {
		t.Errorf("loaded: %v", loaded)
	}
}
