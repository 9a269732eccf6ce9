package picture

import (
	"bytes"
	"encoding/binary"
)

// The relevant markers of JPEG files.
const (
	jpegBaseline    = 0xc0 // engines decode frames with this marker, 0xc1 and 0xc2
	jpegProgressive = 0xc2
	jpegHuffman     = 0xc4
	jpegRestart     = 0xd0 // to 0xd7
	jpegEnd         = 0xd9
	jpegScan        = 0xda
	jpegQuantize    = 0xdb
	jpegInterval    = 0xdd
	jpegJFIF        = 0xe0
	jpegAdobe       = 0xee
	jpegLastApp     = 0xef
	jpegComment     = 0xfe
)

// maxScans bounds the scans of a progressive file, each of which visits all pixels but takes few bytes. Encoders use ten.
const maxScans = 64

// jfif is a JFIF segment without a thumbnail. Its presence tells decoders the color space.
const jfif = "\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"

type jpegFile struct {
	out    []byte
	frames int
	scans  int
	isJFIF bool

	hasCodes, hasSteps bool // tables that are required for decoding
}

// stripJPEG copies the segments that are needed for the pixels.
func stripJPEG(data []byte, _ Info) ([]byte, error) {
	j := jpegFile{out: append(make([]byte, 0, len(data)), 0xff, 0xd8)}
	for rest := data[2:]; ; {
		// Some encoders leave bytes between segments, which decoders skip.
		i := bytes.IndexByte(rest, 0xff)
		if i < 0 || i+1 >= len(rest) {
			return nil, errCutOff
		}
		marker := rest[i+1]
		rest = rest[i+1:]
		switch {
		case marker == 0xff: // padding
			continue
		case marker == 0, marker&^7 == jpegRestart:
			rest = rest[1:]
			continue
		case marker == jpegEnd && j.scans == 0:
			return nil, errDamaged
		case marker == jpegEnd:
			return append(j.out, 0xff, jpegEnd), nil
		case len(rest) < 3:
			return nil, errCutOff
		}
		n := int(binary.BigEndian.Uint16(rest[1:]))
		if n < 2 {
			return nil, errDamaged
		}
		if len(rest) < 1+n {
			return nil, errCutOff
		}
		segment := rest[:1+n]
		rest = rest[len(segment):]
		if !j.add(marker, segment) {
			return nil, errDamaged
		}
		if marker == jpegScan {
			end := scanEnd(rest)
			j.out = append(j.out, rest[:end]...)
			rest = rest[end:]
		}
	}
}

// add copies a segment or leaves it out. It reports whether the segment is valid in its position.
func (j *jpegFile) add(marker byte, segment []byte) bool {
	content := segment[3:]
	switch {
	case marker >= jpegBaseline && marker <= jpegProgressive:
		j.frames++
		if j.frames > 1 {
			return false
		}
	case marker == jpegScan:
		j.scans++
		if j.frames == 0 || !j.hasCodes || !j.hasSteps || j.scans > maxScans {
			return false
		}
	case marker == jpegHuffman:
		j.hasCodes = true
	case marker == jpegQuantize:
		j.hasSteps = true
	case marker == jpegInterval:
	case marker == jpegJFIF && bytes.HasPrefix(content, []byte("JFIF\x00")):
		if !j.isJFIF {
			j.out, j.isJFIF = append(j.out, jfif...), true
		}
		return true
	case marker == jpegAdobe && len(content) >= 12 && bytes.HasPrefix(content, []byte("Adobe")):
		j.out = append(append(j.out, 0xff, jpegAdobe, 0, 14), content[:12]...)
		return true
	default:
		return marker >= jpegJFIF && marker <= jpegLastApp || marker == jpegComment
	}
	j.out = append(append(j.out, 0xff), segment...)
	return true
}

// scanEnd returns the length of the scan at the beginning of data, which ends with a marker that doesn't belong to it.
func scanEnd(data []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(data[at:], 0xff)
		if i < 0 || at+i+1 >= len(data) {
			return len(data)
		}
		at += i
		if next := data[at+1]; next != 0 && next&^7 != jpegRestart {
			return at
		}
		at += 2
	}
}
