// Package audio makes recordings from untrusted sources safe for engines and for the store.
//
// Engines decode recordings in C. [Normalize] accepts only the three formats that llama.cpp decodes. It validates the headers, of MP3
// those of all frames, and removes everything but the sound, which is neither decoded nor changed. The package does no I/O.
package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The limits of recordings. Engines decode all of one at 64 kB a second before they begin.
const (
	MaxBytes    = 20 << 20 // the largest size of a file
	MaxDuration = time.Hour
)

// HasMagic reports whether data begins like a file of a format that [Normalize] accepts.
func HasMagic(data []byte) bool {
	return len(data) >= 12 && (string(data[:4]) == "RIFF" && string(data[8:12]) == "WAVE" || string(data[:4]) == "fLaC" ||
		string(data[:3]) == "ID3" || data[0] == 0xff && data[1]&0xe6 == 0xe2)
}

// Normalize returns a file with the same sound and nothing else, its format in OpenAI's words, and how long it lasts. Its errors are
// clauses whose subject is the recording.
func Normalize(data []byte) (clean []byte, format string, lasts time.Duration, err error) {
	var samples, rate uint64 // in a second
	switch {
	case len(data) > MaxBytes:
		return nil, "", 0, fmt.Errorf("is larger than %d MiB", MaxBytes>>20)
	case !HasMagic(data):
		return nil, "", 0, errors.New("is not a WAV, MP3 or FLAC file")
	case data[0] == 'R':
		format = "wav"
		clean, samples, rate = wav(data)
	case data[0] == 'f':
		format = "flac"
		clean, samples, rate = flac(data)
	default:
		format = "mp3"
		clean, samples, rate = mp3(data)
	}
	if samples == 0 || rate == 0 {
		return nil, "", 0, errors.New("is damaged, cut off, or of a variant that this server can't read")
	}
	seconds := float64(samples) / float64(rate)
	if seconds > MaxDuration.Seconds() {
		return nil, "", 0, fmt.Errorf("is longer than %v minutes", MaxDuration.Minutes())
	}
	return clean, format, time.Duration(seconds * float64(time.Second)), nil
}

// wavBits are the bits that a sample may have, by the kind: whole numbers, floating point, A-law, µ-law, and those with more parameters.
var wavBits = map[uint16][]uint16{1: {8, 16, 24, 32}, 3: {32, 64}, 6: {8}, 7: {8}, 0xfffe: {8, 16, 24, 32, 64}}

func wav(data []byte) (_ []byte, samples, rate uint64) {
	le := binary.LittleEndian
	var format, sound []byte
	for rest := data[12:]; sound == nil; {
		if len(rest) < 8 {
			return nil, 0, 0
		}
		name, size, body := string(rest[:4]), uint64(le.Uint32(rest[4:])), rest[8:]
		if name == "data" && (size == math.MaxUint32 || size == 0) { // its writer couldn't go back
			size = uint64(len(body))
		}
		switch {
		case size > uint64(len(body)):
			return nil, 0, 0
		case name == "fmt ":
			format = body[:size]
		case name == "data":
			sound = body[:size]
		}
		rest = body[min(uint64(len(body)), size+size&1):]
	}
	const leastFormat, mostFormat, maxRate, maxChannels = 16, 64, 384_000, 8
	if len(format) < leastFormat || len(format) > mostFormat || format[0] == 0xfe && len(format) < 40 {
		return nil, 0, 0
	}
	kind, channels, hertz := le.Uint16(format), le.Uint16(format[2:]), le.Uint32(format[4:])
	block, bits := le.Uint16(format[12:]), le.Uint16(format[14:])
	if !slices.Contains(wavBits[kind], bits) || channels == 0 || channels > maxChannels || hertz > maxRate || block != channels*bits/8 {
		return nil, 0, 0
	}
	samples = uint64(len(sound)) / uint64(block)
	sound, format = sound[:samples*uint64(block)], format[:len(format)&^1]
	chunk := func(dst []byte, name string, size int) []byte {
		return le.AppendUint32(append(dst, name...), uint32(size)) //nolint:gosec // at most MaxBytes
	}
	clean := chunk(make([]byte, 0, 28+mostFormat+len(sound)), "RIFF", 20+len(format)+len(sound))
	clean = append(chunk(append(clean, "WAVE"...), "fmt ", len(format)), format...)
	return append(chunk(clean, "data", len(sound)), sound...), samples, uint64(hertz)
}

func flac(data []byte) (_ []byte, samples, rate uint64) {
	const head, about, last = 4, 34, 0x80 // bytes before each block of metadata and of the first one; the sign of the last one
	be, blocks := binary.BigEndian, data[len("fLaC"):]
	if len(blocks) < head+about || be.Uint32(blocks)&^(last<<24) != about {
		return nil, 0, 0
	}
	info := blocks[head : head+about]
	for isLast := false; !isLast; {
		if len(blocks) < head || head+uint64(be.Uint32(blocks)&(1<<24-1)) > uint64(len(blocks)) {
			return nil, 0, 0
		}
		isLast, blocks = blocks[0]&last != 0, blocks[head+be.Uint32(blocks)&(1<<24-1):]
	}
	if len(blocks) < 2 || be.Uint16(blocks)&0xfffe != 0xfff8 { // of a frame
		return nil, 0, 0
	}
	clean := slices.Concat([]byte("fLaC"), []byte{last, 0, 0, about}, info, blocks)
	return clean, be.Uint64(info[10:]) & (1<<36 - 1), uint64(be.Uint32(info[10:]) >> 12)
}

func mp3(data []byte) (_ []byte, samples, rate uint64) {
	const head, aboutTags = 10, 64 << 10 // of a tag; of all that may follow the last frame
	for len(data) > head && string(data[:3]) == "ID3" {
		size := head
		for i, part := range data[6:head] {
			size += int(part&0x7f) << (7 * (3 - i))
		}
		data = data[min(size, len(data)):]
	}
	for rest := data; ; {
		size, lasts, hertz := mp3Frame(rest)
		if size == 0 || size > len(rest) || samples > 0 && hertz != rate {
			if len(rest) > aboutTags {
				return nil, 0, 0
			}
			return data[:len(data)-len(rest)], samples, rate
		}
		rest, samples, rate = rest[size:], samples+lasts, hertz
	}
}

// mp3Bitrates are kilobits a second, of MPEG-1 and of its successors with lower rates.
var mp3Bitrates = [2][]int{
	{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// mp3Frame reads the head of a frame: its size in bytes, 0 if it is none, its samples, and their rate.
func mp3Frame(data []byte) (size int, samples, rate uint64) {
	if len(data) < 4 || data[0] != 0xff || data[1]&0xe6 != 0xe2 {
		return 0, 0, 0
	}
	halved := []int{2, -1, 1, 0}[data[1]>>3&3] // the rate: MPEG-2.5, none, MPEG-2, MPEG-1
	bitrate, index, padding := int(data[2]>>4)-1, int(data[2]>>2&3), int(data[2]>>1&1)
	if halved < 0 || bitrate < 0 || bitrate == 14 || index == 3 {
		return 0, 0, 0
	}
	low := min(halved, 1)
	count, hertz := 1152>>low, []int{44_100, 48_000, 32_000}[index]>>halved
	return count/8*mp3Bitrates[low][bitrate]*1000/hertz + padding, uint64(count), uint64(hertz) //nolint:gosec // it is positive
}
