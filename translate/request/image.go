package request

import (
	"bytes"
	"encoding/base64"
	"regexp"
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

// Images reads the images of one request.
type Images struct {
	number int
	pixels int64
}

// Read returns the image of a data URL as it is stored and sent to an engine: a PNG or JPEG file without metadata, whatever
// type the client gave it. where is the field with the URL.
func (m *Images) Read(where string, dataURL []byte) (*translate.Image, *translate.Error) {
	encoded, ok := cutDataURL(dataURL)
	if !ok {
		return nil, translate.Invalid("invalid_image_url", where,
			`"`+where+`" must be a base64 data URL of an image, such as "data:image/png;base64,…": this server fetches no images.`)
	}
	return m.Decode(where, encoded)
}

// Decode is like [Images.Read] for plain base64.
func (m *Images) Decode(where string, encoded []byte) (*translate.Image, *translate.Error) {
	if m.number++; m.number > MaxImages {
		return nil, badImage(where, "is one of more than "+strconv.Itoa(MaxImages)+" images: send fewer in one request.")
	}
	// A line break may follow every 64 characters or so.
	if len(encoded) > base64.StdEncoding.EncodedLen(picture.MaxBytes)/32*33 {
		return nil, badImage(where, "holds an image that is larger than "+strconv.Itoa(picture.MaxBytes>>20)+" MiB: send a smaller one.")
	}
	data, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err != nil {
		data, err = base64.RawStdEncoding.AppendDecode(nil, encoded) // some clients leave out the padding
	}
	if err != nil || len(data) == 0 {
		return nil, badImage(where, "holds no valid base64.")
	}
	info, err := picture.Check(data)
	if err == nil {
		if m.pixels += info.Pixels(); m.pixels > maxImagePixels {
			return nil, badImage(where, "holds an image with which the request's images have more than "+strconv.Itoa(maxImagePixels/1_000_000)+
				" million pixels together: send smaller or fewer images.")
		}
		data, info, err = picture.Normalize(data)
	}
	if err != nil {
		return nil, badImage(where, "holds an image that "+err.Error()+".")
	}
	return &translate.Image{Type: info.Type, Data: data}, nil
}

func badImage(where, is string) *translate.Error {
	return translate.Invalid("invalid_image", where, `"`+where+`" `+is)
}

// imageType matches the media type of an image.
var imageType = regexp.MustCompile(`^image/[a-z0-9][a-z0-9.+-]*$`)

// cutDataURL returns the base64 of a URL of the form data:image/png;base64,….
func cutDataURL(url []byte) (encoded []byte, ok bool) {
	head, encoded, found := bytes.Cut(url, []byte(","))
	kind, isData := strings.CutPrefix(strings.ToLower(string(head)), "data:")
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	kind, _, _ = strings.Cut(kind, ";")
	return encoded, found && isData && isBase64 && imageType.MatchString(kind)
}
