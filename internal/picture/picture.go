// Package picture makes pictures from untrusted sources safe for engines and for the store.
//
// Engines decode pictures in C, and pass unknown formats to other programs. [Normalize] accepts only the five formats that
// browsers show. It validates every header, and removes everything but the pixels: metadata, thumbnails and data after the end.
// PNG and JPEG files keep their format and aren't decoded. The others are re-encoded: WebP because llama-server can't read it,
// GIF and BMP because that is simpler than cleaning them.
//
// The package does no I/O.
package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// The limits of pictures.
const (
	// MaxBytes is the largest size of a file, before and after.
	MaxBytes = 20 << 20
	// MaxPixels is the largest product of width and height. Engines decode all pixels before they scale a picture down.
	MaxPixels = 64_000_000
	// MaxConverted is the same for formats that are decoded here, with four bytes per pixel.
	MaxConverted = 16_000_000
)

// Info is the information in a picture's header.
type Info struct {
	Type          string // media type, such as image/png, from the content
	Width, Height int
}

// Pixels returns the number of pixels.
func (i Info) Pixels() int64 { return int64(i.Width) * int64(i.Height) }

// Error says what is wrong with a picture.
type Error string

// Error returns a clause whose subject is the picture, such as "is cut off".
func (e Error) Error() string { return string(e) }

const (
	errFormat  Error = "is not a PNG, JPEG, GIF, BMP or WebP file"
	errDamaged Error = "is damaged, or of a variant that this server can't read"
	errCutOff  Error = "is cut off"
	errBallast Error = "holds more data than its pixels can take"
)

type format struct {
	name      string // subtype of the media type
	magic     string // first bytes; ? matches any
	header    func([]byte) (image.Config, error)
	normalize func([]byte, Info) ([]byte, error)
	pixels    int64 // limit
}

var formats = []format{
	{"png", pngMagic, header(png.DecodeConfig), stripPNG, MaxPixels},
	{"jpeg", "\xff\xd8\xff", header(jpeg.DecodeConfig), stripJPEG, MaxPixels},
	{"gif", "GIF8?a", header(gif.DecodeConfig), nil, MaxConverted},
	{"bmp", "BM", header(bmp.DecodeConfig), nil, MaxConverted},
	{"webp", "RIFF????WEBP", header(webp.DecodeConfig), nil, MaxConverted},
}

// decoders are for the formats that are re-encoded.
var decoders = map[string]decoder{"gif": gif.Decode, "bmp": bmp.Decode, "webp": webp.Decode}

// HasMagic reports whether data begins like a file of a format that [Normalize] accepts.
func HasMagic(data []byte) bool {
	return slices.ContainsFunc(formats, func(f format) bool { return f.matches(data) })
}

// Check returns the information in a picture's header. Its errors are of type [Error].
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

// Normalize returns a PNG or JPEG file with the same pixels and nothing else, and its information. Of an animation it returns the
// first picture. Its errors are of type [Error].
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
	}
	// JPEG at its best quality needs about 20 bytes per pixel, and rounds width and height up.
	const perPixel, round, tables = 32, 32, 64 << 10
	if int64(len(clean)) > tables+perPixel*(int64(info.Width)+round)*(int64(info.Height)+round) {
		return nil, Info{}, errBallast
	}
	return clean, info, nil
}

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

type decoder = func(io.Reader) (image.Image, error)

// converting bounds the memory of conversions, which take up to 100 MiB each.
var converting = make(chan struct{}, 2)

// quality is high enough that converting a lossy WebP file causes no visible loss.
const quality = 95

// convert re-encodes a picture as PNG. Lossy WebP becomes JPEG, since a photograph would be ten times as large as PNG.
func convert(data []byte, decode decoder) ([]byte, Info, error) {
	converting <- struct{}{}
	defer func() { <-converting }()
	decoded, err := decode(bytes.NewReader(data))
	if err != nil {
		return nil, Info{}, errDamaged
	}
	size := decoded.Bounds().Size()
	if size.X <= 0 || size.Y <= 0 {
		return nil, Info{}, errDamaged
	}
	var out bytes.Buffer
	if lossy, ok := decoded.(*image.YCbCr); ok {
		err = jpeg.Encode(&out, lossy, &jpeg.Options{Quality: quality})
		return out.Bytes(), Info{"image/jpeg", size.X, size.Y}, err
	}
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	err = encoder.Encode(&out, decoded)
	return out.Bytes(), Info{"image/png", size.X, size.Y}, err
}
