package request

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/audio"
	"github.com/lmcaddy/lmcaddy/internal/picture"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of all files of a request.
const (
	MaxMedia       = 64
	maxImagePixels = 256_000_000
)

// MediaReader reads the images and recordings of one request.
type MediaReader struct {
	number int
	pixels int64
	Heard  time.Duration // how long the recordings are together
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
	data, bad := m.decode(where, MediumImage, encoded)
	if bad != nil {
		return nil, bad
	}
	info, err := picture.Check(data)
	if err == nil {
		if m.pixels += info.Pixels(); m.pixels > maxImagePixels {
			return nil, MediumImage.bad(where, "with which the request's images have more than "+strconv.Itoa(maxImagePixels/1_000_000)+
				" million pixels together: send smaller or fewer images")
		}
		data, info, err = picture.Normalize(data)
	}
	if err != nil {
		return nil, MediumImage.bad(where, "that "+err.Error())
	}
	return &translate.Media{Type: info.Type, Data: data}, nil
}

// Hear is Decode of a recording.
func (m *MediaReader) Hear(where string, encoded []byte) (*translate.Media, *translate.Error) {
	data, bad := m.decode(where, MediumAudio, encoded)
	if bad != nil {
		return nil, bad
	}
	return m.HearFile(where, data)
}

// HearFile returns a recording, a WAV, MP3 or FLAC file, without tags.
func (m *MediaReader) HearFile(where string, file []byte) (*translate.Media, *translate.Error) {
	data, info, err := audio.Normalize(file)
	if err != nil {
		return nil, MediumAudio.bad(where, "that "+err.Error())
	}
	if m.Heard += info.Duration; m.Heard > audio.MaxDuration {
		return nil, MediumAudio.bad(where, "with which those of the request are longer than an hour together: send shorter or fewer ones")
	}
	return &translate.Media{Type: info.Type, Data: data}, nil
}

// HearPart reads {"data":"…","format":"wav"}, which OpenAI's APIs have in parts of the type input_audio.
func (m *MediaReader) HearPart(where string, given []byte) (*translate.Media, *translate.Error) {
	switch {
	case !jsonbody.IsGiven(given):
		return nil, translate.Missing(where)
	case given[0] != '{':
		return nil, jsonbody.WrongJSON(where, "an object", given)
	}
	r := jsonbody.Read(where, given)
	data, format := r.Required("data"), r.Required("format")
	if r.Err != nil {
		return nil, r.Err
	}
	heard, bad := m.Hear(r.At("data"), []byte(data))
	if bad == nil && format != heard.AudioFormat() {
		return nil, translate.BadValue(r.At("format"), `must be "%s", as the data are, not %s.`, heard.AudioFormat(), translate.QuoteShort(format))
	}
	return heard, bad
}

// Take reads base64 of an image or a recording, as its bytes are. What the model doesn't take is [Caps.Unseen].
func (m *MediaReader) Take(where string, encoded []byte, caps *Caps) (part translate.Part, bad *translate.Error) {
	const enough = 32
	data := plainBase64(encoded)
	head, _ := base64.StdEncoding.AppendDecode(nil, data[:min(len(data), enough)]) // up to what is no base64
	switch isAudio := audio.HasMagic(head); {
	case isAudio && !caps.Audio:
		return caps.Unseen(where, MediumAudio)
	case isAudio:
		part.Media, bad = m.Hear(where, encoded)
	case !caps.Vision:
		return caps.Unseen(where, MediumImage)
	default:
		part.Media, bad = m.Decode(where, encoded)
	}
	return part, bad
}

func (m *MediaReader) decode(where string, medium Medium, encoded []byte) ([]byte, *translate.Error) {
	encoded = plainBase64(encoded)
	if m.number++; m.number > MaxMedia {
		return nil, translate.Refused(medium.code(), where, "is one of more than %d %ss: send fewer in one request.", MaxMedia, medium.noun())
	}
	// A line break may follow every 64 characters or so, and two of 64 may be percent escapes.
	if len(encoded) > base64.StdEncoding.EncodedLen(picture.MaxBytes)/8*9 {
		return nil, medium.bad(where, "that is larger than "+strconv.Itoa(picture.MaxBytes>>20)+" MiB: send a smaller one")
	}
	data, err := decodeBase64(encoded)
	if err != nil || len(data) == 0 {
		return nil, translate.Refused(medium.code(), where, "holds no valid base64.")
	}
	return data, nil
}

func plainBase64(encoded []byte) []byte {
	if IsDataURL(encoded) {
		return encoded[bytes.IndexByte(encoded, ',')+1:]
	}
	return encoded
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
