package picture

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"io"
)

type decoder = func(io.Reader) (image.Image, error)

// converting bounds the memory of conversions: each holds some 100 MiB at most.
var converting = make(chan struct{}, 2)

// quality is high enough that what a lossy WebP file has already lost isn't lost again to the eye.
const quality = 95

// convert encodes a picture again: as PNG, but lossy WebP as JPEG, since a photograph would be ten times as large as PNG.
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
