package picture

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"io"
)

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
