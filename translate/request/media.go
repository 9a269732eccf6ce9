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

// Read returns the file of a data URL as it is stored and sent to an engine: a PNG, JPEG, WAV, MP3 or FLAC file without metadata. What it
// is its bytes say, whatever type the client gave it. where is the field with the URL.
func (m *MediaReader) Read(medium Medium, where string, dataURL []byte) (*translate.Media, *translate.Error) {
	if w := words[medium]; !IsDataURL(dataURL) {
		return nil, translate.Refused("invalid_"+string(medium)+"_url", where,
			`must be a base64 data URL of %s, such as "%s": this server fetches no %s.`, w.one, w.example, w.all)
	}
	return m.Decode(medium, where, dataURL)
}

// Decode is like [MediaReader.Read] for base64, plain or in a data URL.
func (m *MediaReader) Decode(medium Medium, where string, encoded []byte) (*translate.Media, *translate.Error) {
	if IsDataURL(encoded) {
		encoded = encoded[bytes.IndexByte(encoded, ',')+1:]
	}
	if m.number++; m.number > MaxMedia {
		return nil, translate.Refused("invalid_"+string(medium), where, "is one of more than %d %s: send fewer in one request.",
			MaxMedia, words[medium].all)
	}
	// A line break may follow every 64 characters or so, and two of 64 may be percent escapes.
	if len(encoded) > base64.StdEncoding.EncodedLen(picture.MaxBytes)/8*9 {
		return nil, medium.bad(where, "that is larger than "+strconv.Itoa(picture.MaxBytes>>20)+" MiB: send a smaller one")
	}
	data, err := decodeBase64(encoded)
	switch {
	case err != nil || len(data) == 0:
		return nil, translate.Refused("invalid_"+string(medium), where, "holds no valid base64.")
	case medium == MediumAudio:
		return m.Hear(where, data)
	}
	info, err := picture.Check(data)
	if err == nil {
		if m.pixels += info.Pixels(); m.pixels > maxImagePixels {
			return nil, medium.bad(where, "with which the request's images have more than "+strconv.Itoa(maxImagePixels/1_000_000)+
				" million pixels together: send smaller or fewer images")
		}
		data, info, err = picture.Normalize(data)
	}
	if err != nil {
		return nil, medium.bad(where, "that "+err.Error())
	}
	return &translate.Media{Type: info.Type, Data: data}, nil
}

// Hear is Decode of a recording's bytes.
func (m *MediaReader) Hear(where string, data []byte) (*translate.Media, *translate.Error) {
	clean, format, lasts, err := audio.Normalize(data)
	if err != nil {
		return nil, MediumAudio.bad(where, "that "+err.Error())
	}
	if m.Heard += lasts; m.Heard > audio.MaxDuration {
		return nil, MediumAudio.bad(where, "with which those of the request are longer than an hour together: send shorter or fewer ones")
	}
	return &translate.Media{Type: "audio/" + format, Data: clean}, nil
}

// HearPart reads {"data":"…","format":"wav"}, which OpenAI's APIs have in parts of the type input_audio.
func (m *MediaReader) HearPart(where string, given []byte) (*translate.Media, *translate.Error) {
	if !jsonbody.IsGiven(given) {
		return nil, translate.Missing(where)
	}
	r := jsonbody.Read(where, given)
	data, format := r.Required("data"), r.Required("format")
	if r.Err != nil {
		return nil, r.Err
	}
	heard, bad := m.Decode(MediumAudio, r.At("data"), []byte(data))
	if bad == nil && heard.Type != "audio/"+format {
		bad = translate.BadValue(r.At("format"), `must be "%s", as the data are.`, heard.Type[len("audio/"):])
	}
	return heard, bad
}

// Take reads base64 of an image or a recording, as its bytes are. What the model doesn't take is [Caps.Unseen].
func (m *MediaReader) Take(where string, encoded []byte, caps *Caps) (part translate.Part, bad *translate.Error) {
	medium, data := MediumImage, encoded[bytes.IndexByte(encoded[:min(len(encoded), 64)], ',')+1:]
	if head, _ := base64.StdEncoding.AppendDecode(nil, data[:min(len(data), 32)]); audio.HasMagic(head) {
		medium = MediumAudio
	}
	if !caps.Takes(medium) {
		return caps.Unseen(where, medium)
	}
	part.Media, bad = m.Decode(medium, where, encoded)
	return part, bad
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
