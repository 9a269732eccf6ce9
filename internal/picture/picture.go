// Package picture makes pictures that strangers send fit for an engine and for the store.
//
// An engine decodes pictures in C, and hands what it doesn't know to other programs. So [Normalize] lets through only the five
// formats that browsers show, reads every header itself, and keeps nothing of a file but what its pixels are made of: no
// metadata, no thumbnails, nothing behind the end. PNG and JPEG files stay what they are, without being decoded. The others
// are decoded and encoded again, WebP because llama-server can't read it, GIF and BMP because little else is left of them.
//
// The package is pure: it opens nothing and starts nothing.
package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// The bounds of a picture.
const (
	// MaxBytes is the size of a file, before and after.
	MaxBytes = 20 << 20
	// MaxPixels is the width times the height. An engine decodes all of them before it makes the picture smaller.
	MaxPixels = 64_000_000
	// MaxConverted is the same for the formats that are decoded here, at four bytes for each pixel.
	MaxConverted = 16_000_000
)

// Info is what the header of a picture says.
type Info struct {
	Type          string // its media type, such as image/png: what the file is, whatever its sender calls it
	Width, Height int
}

// Pixels is the width times the height.
func (i Info) Pixels() int64 { return int64(i.Width) * int64(i.Height) }

// Error says what is wrong with a picture.
type Error string

// Error gives a clause whose subject is the picture: "is cut off".
func (e Error) Error() string { return string(e) }

const (
	errFormat  Error = "is not a PNG, JPEG, GIF, BMP or WebP file"
	errDamaged Error = "is damaged, or of a variant that this server can't read"
	errCutOff  Error = "is cut off"
	errBallast Error = "holds more data than its pixels can take"
)

// format is a kind of file that is let through.
type format struct {
	name      string // of its media type
	magic     string // how it begins; ? is any byte
	header    func([]byte) (image.Config, error)
	normalize func([]byte, Info) ([]byte, error)
	pixels    int64 // at most
}

var formats = []format{
	{"png", pngMagic, header(png.DecodeConfig), stripPNG, MaxPixels},
	{"jpeg", "\xff\xd8\xff", header(jpeg.DecodeConfig), stripJPEG, MaxPixels},
	{"gif", "GIF8?a", header(gif.DecodeConfig), nil, MaxConverted},
	{"bmp", "BM", header(bmp.DecodeConfig), nil, MaxConverted},
	{"webp", "RIFF????WEBP", header(webp.DecodeConfig), nil, MaxConverted},
}

// decoders are for the formats that are encoded again.
var decoders = map[string]decoder{"gif": gif.Decode, "bmp": bmp.Decode, "webp": webp.Decode}

// Check reads no more than the header of a picture: what it is, and how large. Its errors are [Error].
func Check(data []byte) (Info, error) {
	_, info, err := check(data)
	return info, err
}

func check(data []byte) (*format, Info, error) {
	if len(data) > MaxBytes {
		return nil, Info{}, Error(fmt.Sprintf("is larger than %d MiB", MaxBytes>>20))
	}
	for i := range formats {
		f := &formats[i]
		if !f.matches(data) {
			continue
		}
		config, err := f.header(data)
		info := Info{"image/" + f.name, config.Width, config.Height}
		switch {
		case err != nil, config.Width <= 0, config.Height <= 0:
			return nil, Info{}, errDamaged
		case info.Pixels() > f.pixels:
			return nil, Info{}, Error(fmt.Sprintf("is %d pixels wide and %d high, and may have no more than %d million pixels as a %s file",
				info.Width, info.Height, f.pixels/1_000_000, strings.ToUpper(f.name)))
		}
		return f, info, nil
	}
	return nil, Info{}, errFormat
}

// Normalize gives a file of the same pixels and nothing else, and what it is: a PNG or a JPEG file. Of an animation it keeps
// the first picture. Its errors are [Error].
func Normalize(data []byte) ([]byte, Info, error) {
	f, info, err := check(data)
	if err != nil {
		return nil, Info{}, err
	}
	var clean []byte
	if f.normalize != nil {
		clean, err = f.normalize(data, info)
	} else {
		clean, info, err = convert(data, decoders[f.name])
	}
	switch {
	case err != nil:
		return nil, Info{}, err
	case len(clean) > MaxBytes:
		return nil, Info{}, Error(fmt.Sprintf("is larger than %d MiB as a PNG file", MaxBytes>>20))
	case int64(len(clean)) > ballast(info):
		return nil, Info{}, errBallast
	}
	return clean, info, nil
}

// ballast is more than a file of so many pixels can need, in bytes: JPEG at its best quality needs about 20 for each, and
// rounds up the width and the height.
func ballast(i Info) int64 {
	const perPixel, round, tables = 32, 32, 64 << 10
	return tables + perPixel*(int64(i.Width)+round)*(int64(i.Height)+round)
}

// header has a decoder of headers read bytes.
func header(read func(io.Reader) (image.Config, error)) func([]byte) (image.Config, error) {
	return func(data []byte) (image.Config, error) { return read(bytes.NewReader(data)) }
}

func (f *format) matches(data []byte) bool {
	if len(data) < len(f.magic) {
		return false
	}
	for i := range len(f.magic) {
		if f.magic[i] != '?' && f.magic[i] != data[i] {
			return false
		}
	}
	return true
}
