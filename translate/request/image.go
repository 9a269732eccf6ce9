package request

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/picture"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Limits of all images of a request.
const (
	MaxImages      = 64
	maxImagePixels = 256_000_000
)

// MediaReader reads the images of one request.
type MediaReader struct {
	number int
	pixels int64
}

// Read returns the image of a data URL as it is stored and sent to an engine: a PNG or JPEG file without metadata. What it is its bytes
// say, whatever type the client gave it. where is the field with the URL.
func (m *MediaReader) Read(where string, dataURL []byte) (*translate.Media, *translate.Error) {
	if !IsDataURL(dataURL) {
		return nil, translate.Refused("invalid_image_url", where,
			`must be a base64 data URL of an image, such as "data:image/png;base64,…": this server fetches no images.`)
	}
	return m.Decode(where, dataURL)
}

// Decode is like [MediaReader.Read] for base64, plain or in a data URL.
func (m *MediaReader) Decode(where string, encoded []byte) (*translate.Media, *translate.Error) {
	if IsDataURL(encoded) {
		encoded = encoded[bytes.IndexByte(encoded, ',')+1:]
	}
	if m.number++; m.number > MaxImages {
		return nil, badImage(where, "is one of more than "+strconv.Itoa(MaxImages)+" images: send fewer in one request.")
	}
	// A line break may follow every 64 characters or so, and two of 64 may be percent escapes.
	if len(encoded) > base64.StdEncoding.EncodedLen(picture.MaxBytes)/8*9 {
		return nil, badImage(where, "holds an image that is larger than "+strconv.Itoa(picture.MaxBytes>>20)+" MiB: send a smaller one.")
	}
	data, err := decodeBase64(encoded)
	if err != nil || len(data) == 0 {
		return nil, badImage(where, "holds no valid base64.")
	}
	info, err := picture.Check(data)
	if err == nil {
		if m.pixels += info.Pixels(); m.pixels > maxImagePixels {
			return nil, badImage(where, "holds an image with which the request's images have more than "+
				strconv.Itoa(maxImagePixels/1_000_000)+" million pixels together: send smaller or fewer images.")
		}
		data, info, err = picture.Normalize(data)
	}
	if err != nil {
		return nil, badImage(where, "holds an image that "+err.Error()+".")
	}
	return &translate.Media{Type: info.Type, Data: data}, nil
}

func badImage(where, is string) *translate.Error {
	return translate.Refused("invalid_image", where, "%s", is)
}

// IsDataURL reports whether a text is a URL with its data in it, such as data:image/png;base64,….
func IsDataURL(text []byte) bool {
	const scheme = "data:"
	return len(text) >= len(scheme) && bytes.EqualFold(text[:len(scheme)], []byte(scheme)) && bytes.IndexByte(text, ',') > 0
}

// decodeBase64 decodes base64 in either alphabet, with or without padding, white space and percent escapes.
func decodeBase64(encoded []byte) ([]byte, error) {
	data, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err == nil {
		return data, nil
	}
	plain := string(encoded)
	if strings.Contains(plain, "%") {
		if plain, err = url.PathUnescape(plain); err != nil {
			return nil, err
		}
	}
	plain = strings.Map(func(c rune) rune {
		switch c {
		case '-':
			return '+'
		case '_':
			return '/'
		case ' ', '\t', '\r', '\n':
			return -1
		}
		return c
	}, plain)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(plain, "="))
}
