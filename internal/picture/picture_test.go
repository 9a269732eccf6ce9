package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
)

// noise returns a picture that can't be compressed, with a transparent corner.
func noise(width, height int) *image.NRGBA {
	r := rand.New(rand.NewPCG(1, 2))
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = byte(r.UintN(256))
	}
	return m
}

func opaque(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.RGBA{byte(x * 9), byte(y * 5), byte(x * y), 255})
		}
	}
	return m
}

func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, m) })
}

func jpegOf(t testing.TB, m image.Image) []byte {
	return encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) })
}

func webpOf(t testing.TB, lossless bool) []byte {
	t.Helper()
	text := "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
	if lossless {
		text = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// chunk returns a chunk of a PNG file.
func chunk(kind string, content []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	b = append(append(b, kind...), content...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// afterHeader inserts bytes after a PNG file's first chunk.
func afterHeader(file, more []byte) []byte {
	const end = len(pngMagic) + 25
	return append(append(bytes.Clone(file[:end]), more...), file[end:]...)
}

// segment returns a segment of a JPEG file.
func segment(marker byte, content string) string {
	n := len(content) + 2
	return string([]byte{0xff, marker, byte(n >> 8), byte(n)}) + content
}

// afterStart inserts bytes after the first marker of a JPEG file.
func afterStart(file []byte, more string) []byte {
	return append(append(bytes.Clone(file[:2]), more...), file[2:]...)
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	m, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func samePixels(t *testing.T, a, b image.Image) {
	t.Helper()
	if a.Bounds().Size() != b.Bounds().Size() {
		t.Fatalf("%v, want %v", b.Bounds(), a.Bounds())
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			p := color.NRGBA64Model.Convert(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y))
			q := color.NRGBA64Model.Convert(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y))
			if p != q {
				t.Fatalf("at %d, %d: %v, want %v", x, y, q, p)
			}
		}
	}
}

func TestNormalize_KeepsThePixels(t *testing.T) {
	t.Parallel()
	palette := image.NewPaletted(image.Rect(0, 0, 9, 7), color.Palette{color.Transparent, color.White, color.RGBA{1, 2, 3, 255}})
	for i := range palette.Pix {
		palette.Pix[i] = byte(i % 3)
	}
	gray16 := image.NewGray16(image.Rect(0, 0, 5, 5))
	gray16.SetGray16(2, 2, color.Gray16{0x1234})
	for name, tc := range map[string]struct {
		data []byte
		kind string
	}{
		"PNG with alpha":       {pngOf(t, noise(33, 17)), "image/png"},
		"PNG":                  {pngOf(t, opaque(1, 300)), "image/png"},
		"PNG with a palette":   {pngOf(t, palette), "image/png"},
		"PNG of 16 bits":       {pngOf(t, gray16), "image/png"},
		"PNG in gray":          {pngOf(t, image.NewGray(image.Rect(0, 0, 3, 3))), "image/png"},
		"JPEG":                 {jpegOf(t, opaque(33, 17)), "image/jpeg"},
		"JPEG in gray":         {jpegOf(t, image.NewGray(image.Rect(0, 0, 20, 3))), "image/jpeg"},
		"JPEG of one pixel":    {jpegOf(t, noise(1, 1)), "image/jpeg"},
		"JPEG with odd bytes":  {afterStart(jpegOf(t, opaque(8, 8)), segment(jpegComment, "")+"odd\xff\x00\xff\xff"), "image/jpeg"},
		"GIF":                  {encoded(t, func(b *bytes.Buffer) error { return gif.Encode(b, palette, nil) }), "image/png"},
		"BMP":                  {encoded(t, func(b *bytes.Buffer) error { return bmp.Encode(b, opaque(5, 4)) }), "image/png"},
		"WebP without losses":  {webpOf(t, true), "image/png"},
		"PNG with bytes after": {append(pngOf(t, noise(4, 4)), "PK\x03\x04"...), "image/png"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, info, err := Normalize(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			want := decode(t, tc.data)
			size := want.Bounds().Size()
			if (info != Info{tc.kind, size.X, size.Y}) {
				t.Errorf("%+v", info)
			}
			samePixels(t, want, decode(t, kept))
		})
	}
}

func TestNormalize_LossyWebP(t *testing.T) {
	t.Parallel()
	kept, info, err := Normalize(webpOf(t, false))
	if err != nil || info != (Info{"image/jpeg", 1, 1}) {
		t.Fatal(info, err)
	}
	decode(t, kept)
}

func TestNormalize_KeepsNothingElse(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("secret", 10_000)
	plainPNG, plainJPEG := pngOf(t, noise(14, 14)), jpegOf(t, opaque(14, 14))
	for name, tc := range map[string]struct{ data, plain []byte }{
		"PNG text":             {afterHeader(plainPNG, chunk("tEXt", []byte(secret))), plainPNG},
		"PNG profile":          {afterHeader(plainPNG, chunk("iCCP", []byte(secret))), plainPNG},
		"an animation":         {afterHeader(plainPNG, chunk("fdAT", []byte(secret))), plainPNG},
		"after a PNG":          {append(bytes.Clone(plainPNG), secret...), plainPNG},
		"in the end of a PNG":  {append(plainPNG[:len(plainPNG)-12:len(plainPNG)-12], chunk("IEND", []byte(secret))...), plainPNG},
		"JPEG comment":         {afterStart(plainJPEG, segment(jpegComment, secret)), plainJPEG},
		"EXIF":                 {afterStart(plainJPEG, segment(0xe1, "Exif\x00\x00"+secret)), plainJPEG},
		"JPEG profile":         {afterStart(plainJPEG, segment(0xe2, secret)), plainJPEG},
		"JPEG thumbnail":       {afterStart(plainJPEG, segment(0xe0, "JFXX\x00"+secret)), plainJPEG},
		"after a JPEG":         {append(bytes.Clone(plainJPEG), secret...), plainJPEG},
		"between segments":     {afterStart(plainJPEG, segment(jpegComment, "")+secret), plainJPEG},
		"after Adobe's fields": {afterStart(plainJPEG, segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01"+secret)), afterStart(plainJPEG, segment(0xee, "Adobe\x00\x64\x00\x00\x00\x00\x01"))},
		"JFIF's thumbnail":     {afterStart(plainJPEG, segment(0xe0, "JFIF\x00\x01\x02\x01\x00\x48\x00\x48\x10\x10"+secret)), afterStart(plainJPEG, jfif)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, _, err := Normalize(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(kept, tc.plain) {
				t.Errorf("%d bytes were kept of %d, want the %d without them", len(kept), len(tc.data), len(tc.plain))
			}
		})
	}
}

func TestNormalize_Refuses(t *testing.T) {
	t.Parallel()
	plainPNG, plainJPEG := pngOf(t, noise(14, 14)), jpegOf(t, opaque(14, 14))
	header := func(width, height uint32, rest string) []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
		return append([]byte(pngMagic), chunk("IHDR", append(b, rest...))...)
	}
	huge := header(100_000, 100_000, "\x08\x02\x00\x00\x00")
	// A picture of one pixel with the compressed data of a larger one.
	bomb := header(1, 1, "\x08\x00\x00\x00\x00")
	zeros := pngOf(t, image.NewGray(image.Rect(0, 0, 2000, 2000)))
	bomb = append(bomb, zeros[len(pngMagic)+25:]...)
	short := append(header(2000, 2001, "\x08\x00\x00\x00\x00"), zeros[len(pngMagic)+25:]...)
	wrongSum := bytes.Clone(plainPNG)
	wrongSum[len(wrongSum)-20] ^= 1
	scans := bytes.Clone(plainJPEG[:len(plainJPEG)-2])
	for range maxScans {
		scans = append(scans, segment(jpegScan, "\x01\x01\x00\x00\x3f\x00")...)
	}
	scans = append(scans, 0xff, jpegEnd)
	stuffed := append(bytes.Clone(plainJPEG[:len(plainJPEG)-2]), make([]byte, 1<<20)...)
	stuffed = append(stuffed, 0xff, jpegEnd)
	wide := encoded(t, func(b *bytes.Buffer) error {
		return gif.Encode(b, image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.White}), nil)
	})
	copy(wide[6:], "\xff\xff\xff\xff")
	for name, tc := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":                      {nil, "is not a PNG"},
		"random bytes":                 {noise(20, 20).Pix, "is not a PNG"},
		"SVG":                          {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "is not a PNG"},
		"PDF":                          {[]byte("%PDF-1.7\n"), "is not a PNG"},
		"MP4":                          {[]byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"), "is not a PNG"},
		"a playlist":                   {[]byte("#EXTM3U\nhttp://example.org/"), "is not a PNG"},
		"AVI":                          {[]byte("RIFF\x10\x00\x00\x00AVI LIST"), "is not a PNG"},
		"too many bytes":               {append(bytes.Clone(plainPNG), make([]byte, MaxBytes)...), "larger than 20 MiB"},
		"a PNG of too many pixels":     {huge, "100000 pixels wide and 100000 high, and may have no more than 64 million"},
		"a GIF of too many pixels":     {wide, "65535 pixels wide"},
		"PNG: no header":               {[]byte(pngMagic), "is damaged"},
		"PNG: cut off":                 {plainPNG[:len(plainPNG)-13], "is cut off"},
		"PNG: no end":                  {plainPNG[:len(plainPNG)-12], "is cut off"},
		"PNG: a wrong sum":             {wrongSum, "is damaged"},
		"PNG: an unknown chunk":        {afterHeader(plainPNG, chunk("ABCD", nil)), "is damaged"},
		"PNG: two headers":             {afterHeader(plainPNG, plainPNG[len(pngMagic):len(pngMagic)+25]), "is damaged"},
		"PNG: too few pixels":          {short, "is damaged"},
		"PNG: pixels that go on":       {bomb, "more data than"},
		"PNG: empty pieces":            {afterHeader(plainPNG, bytes.Repeat(chunk("IDAT", nil), 20_000)), "more data than"},
		"PNG: two palettes":            {afterHeader(plainPNG, append(chunk("PLTE", []byte("abc")), chunk("PLTE", []byte("abc"))...)), "is damaged"},
		"PNG: no pixels":               {append(header(1, 1, "\x08\x00\x00\x00\x00"), chunk("IEND", nil)...), "is damaged"},
		"JPEG: no frame":               {[]byte("\xff\xd8\xff\xd9"), "is damaged"},
		"JPEG: no tables":              {bytes.ReplaceAll(plainJPEG, []byte("\xff\xc4"), []byte("\xff\xee")), "is damaged"},
		"JPEG: cut off":                {plainJPEG[:len(plainJPEG)-2], "is cut off"},
		"JPEG: cut off in its tables":  {plainJPEG[:100], "is damaged"},
		"JPEG: two frames":             {afterStart(plainJPEG, segment(0xc0, "\x08\x00\x10\x00\x10\x01\x01\x11\x00")), "is damaged"},
		"JPEG: too many scans":         {scans, "is damaged"},
		"JPEG: bytes after the pixels": {stuffed, "more data than"},
		"JPEG: arithmetic coding":      {bytes.Replace(plainJPEG, []byte("\xff\xc0"), []byte("\xff\xc9"), 1), "is damaged"},
		"JPEG: a length of nothing":    {afterStart(plainJPEG, "\xff\xe1\x00\x00"), "is damaged"},
		"WebP: cut off":                {webpOf(t, true)[:24], "is damaged"},
		"GIF: no picture":              {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "is damaged"},
		"BMP: no pixels":               {[]byte("BM"), "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Normalize(tc.data)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}

// TestPNG_Size: interlaced files have other lines. The standard library's decoder shows how many bytes they take.
func TestPNG_Size(t *testing.T) {
	t.Parallel()
	for width := range int64(18) {
		for height := range int64(18) {
			p := pngFile{bits: 8, color: pngGray, interlaced: true}
			pixels := p.size(width+1, height+1)
			lines := int64(0)
			for _, s := range passes {
				if width+1 > s.x {
					lines += max(0, (height+1-s.y+s.dy-1)/s.dy)
				}
			}
			if pixels-lines != (width+1)*(height+1) {
				t.Errorf("%d by %d: %d bytes, of which %d say how lines are filtered", width+1, height+1, pixels, lines)
			}
		}
	}
}

// FuzzNormalize: there is no panic, and an accepted file has the same pixels and is accepted again unchanged.
func FuzzNormalize(f *testing.F) {
	for _, seed := range [][]byte{
		pngOf(f, noise(5, 5)), jpegOf(f, opaque(9, 9)), webpOf(f, true), webpOf(f, false), []byte("BM"),
		encoded(f, func(b *bytes.Buffer) error { return gif.Encode(b, opaque(5, 4), nil) }),
		encoded(f, func(b *bytes.Buffer) error { return bmp.Encode(b, opaque(5, 4)) }),
		afterHeader(pngOf(f, noise(2, 2)), chunk("tRNS", []byte{0, 0, 0, 0, 0, 0})),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if info, err := Check(data); err == nil && info.Pixels() > 1<<16 {
			return // only slow
		}
		kept, info, err := Normalize(data)
		if err != nil {
			if kept != nil || info != (Info{}) {
				t.Errorf("an error, and %d bytes", len(kept))
			}
			return
		}
		again, same, err := Normalize(kept)
		if err != nil || same != info || !bytes.Equal(again, kept) {
			t.Errorf("it isn't let through again: %v, %v", same, err)
		}
		before, _, err := image.Decode(bytes.NewReader(data))
		if err != nil || info.Type == "image/jpeg" && bytes.HasPrefix(data, []byte("RIFF")) {
			return
		}
		samePixels(t, before, decode(t, kept))
	})
}
