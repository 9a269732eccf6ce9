package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
)

const pngMagic = "\x89PNG\r\n\x1a\n"

// The color types of PNG.
const (
	pngGray      = 0
	pngRGB       = 2
	pngPalette   = 3
	pngGrayAlpha = 4
	pngRGBA      = 6
)

var pngSamples = map[byte]int64{pngGray: 1, pngRGB: 3, pngPalette: 1, pngGrayAlpha: 2, pngRGBA: 4}

type pngFile struct {
	bits, color byte
	interlaced  bool
	colors      int // size of the palette
	transparent bool
	out         []byte
	idat        [][]byte // compressed pixels
}

// stripPNG copies the chunks that are needed for the pixels. It decompresses the pixels to count them, since a small file can
// contain gigabytes of zeros, for which an engine would allocate memory.
func stripPNG(data []byte, info Info) ([]byte, error) {
	p := pngFile{out: append(make([]byte, 0, len(data)), pngMagic...)}
	rest := data[len(pngMagic):]
	for first := true; ; first = false {
		if len(rest) < 12 {
			return nil, errCutOff
		}
		n, kind := int64(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		if n > int64(len(rest)-12) {
			return nil, errCutOff
		}
		chunk, content := rest[:12+n], rest[8:8+n]
		rest = rest[len(chunk):]
		isAncillary := kind[0]&0x20 != 0 && kind != "tRNS"
		if isAncillary && !first {
			continue
		}
		if crc32.ChecksumIEEE(chunk[4:8+n]) != binary.BigEndian.Uint32(chunk[8+n:]) || first != (kind == "IHDR") {
			return nil, errDamaged
		}
		if kind == "IEND" {
			break
		}
		if !p.add(kind, content) {
			return nil, errDamaged
		}
		p.out = append(p.out, chunk...)
	}
	if err := p.checkPixels(int64(info.Width), int64(info.Height)); err != nil {
		return nil, err
	}
	return append(p.out, "\x00\x00\x00\x00IEND\xaeB`\x82"...), nil
}

// add reports whether a chunk is valid in its position, and records it.
func (p *pngFile) add(kind string, content []byte) bool {
	switch {
	case kind == "IHDR" && len(content) == 13:
		p.bits, p.color, p.interlaced = content[8], content[9], content[12] == 1
		return content[12] <= 1
	case kind == "PLTE" && p.colors == 0 && !p.transparent && p.idat == nil:
		p.colors = len(content) / 3
		return p.colors > 0 && p.colors <= 256 && len(content)%3 == 0
	case kind == "tRNS" && !p.transparent && p.idat == nil:
		p.transparent = true
		switch p.color {
		case pngGray:
			return len(content) == 2
		case pngRGB:
			return len(content) == 6
		case pngPalette:
			return len(content) <= p.colors
		}
	case kind == "IDAT" && (p.color != pngPalette || p.colors > 0):
		p.idat = append(p.idat, content)
		return true
	}
	return false
}

func (p *pngFile) checkPixels(width, height int64) error {
	readers := make([]io.Reader, len(p.idat))
	for i, content := range p.idat {
		readers[i] = bytes.NewReader(content)
	}
	pixels, err := zlib.NewReader(io.MultiReader(readers...))
	if err != nil {
		return errDamaged
	}
	want := p.size(width, height)
	switch got, err := io.Copy(io.Discard, io.LimitReader(pixels, want+1)); {
	case got > want:
		return errBallast
	case err != nil, got < want:
		return errDamaged
	}
	return nil
}

// passes are the passes of an interlaced file: the offset and distance of the pixels of each.
var passes = []struct{ x, y, dx, dy int64 }{
	{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2},
}

// size returns the number of bytes of the uncompressed pixels. Each line has one byte more, for its filter.
func (p *pngFile) size(width, height int64) (bytes int64) {
	lines := func(w, h int64) {
		if w > 0 && h > 0 {
			bytes += h * (1 + (w*pngSamples[p.color]*int64(p.bits)+7)/8)
		}
	}
	if !p.interlaced {
		lines(width, height)
		return bytes
	}
	for _, s := range passes {
		lines((width-s.x+s.dx-1)/s.dx, (height-s.y+s.dy-1)/s.dy)
	}
	return bytes
}
