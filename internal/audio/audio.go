// Package audio makes recordings from untrusted sources safe for engines and for the store.
//
// Engines decode recordings in C. [Normalize] accepts only the three formats that llama.cpp decodes. It validates the headers, of MP3 those of
// all frames, and removes everything but the sound, which is neither decoded nor changed. The package does no I/O.
package audio

import (
	"bytes"
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

// Info is the information in a recording's headers.
type Info struct {
	Type     string // media type, such as audio/wav, from the content
	Duration time.Duration
}

// Errors are clauses whose subject is the recording.
var (
	errFormat  = errors.New("is not a WAV, MP3 or FLAC file")
	errDamaged = errors.New("is damaged, or of a variant that this server can't read")
	errCutOff  = errors.New("is cut off")
	errSilent  = errors.New("has no sound")
	errEndless = errors.New("doesn't say how long it is: encode it into a file, not into a pipe")
	errLarge   = fmt.Errorf("is larger than %d MiB", MaxBytes>>20)
	errLong    = fmt.Errorf("is longer than %v minutes", MaxDuration.Minutes())
)

// HasMagic reports whether data begins like a file of a format that [Normalize] accepts.
func HasMagic(data []byte) bool {
	const head = 12
	return len(data) >= head && (string(data[:4]) == "RIFF" && string(data[8:head]) == "WAVE" || string(data[:4]) == "fLaC" ||
		string(data[:3]) == "ID3" || data[0] == 0xff && data[1]&0xe6 == 0xe2)
}

// Normalize returns a file with the same sound and nothing else, and its information. Its errors say what is wrong with the recording, such as
// "is cut off".
func Normalize(data []byte) (clean []byte, info Info, err error) {
	samples, rate := uint64(0), uint64(1) // a second
	switch {
	case len(data) > MaxBytes:
		err = errLarge
	case !HasMagic(data):
		err = errFormat
	case data[0] == 'R':
		info.Type = "audio/wav"
		clean, samples, rate, err = wav(data)
	case data[0] == 'f':
		info.Type = "audio/flac"
		clean, samples, rate, err = flac(data)
	default:
		info.Type = "audio/mpeg"
		clean, samples, rate, err = mp3(data)
	}
	if err == nil && samples > rate*uint64(MaxDuration.Seconds()) {
		err = errLong
	}
	if err != nil {
		return nil, Info{}, err
	}
	info.Duration = time.Duration(float64(samples) / float64(rate) * float64(time.Second))
	return clean, info, nil
}

// wavFormat is the beginning of a format in a WAV file, which for most kinds is all of it.
type wavFormat struct {
	Kind, Channels    uint16
	Rate, BytesSecond uint32
	Block, Bits       uint16 // of a sample: bytes in all channels, bits in one
}

// wavBits are the bits that a sample may have, by the kind: whole numbers, floating point, A-law and µ-law.
var wavBits = map[uint16][]uint16{1: {8, 16, 24, 32}, 3: {32, 64}, 6: {8}, 7: {8}}

func wav(data []byte) (_ []byte, samples, rate uint64, _ error) {
	le := binary.LittleEndian
	var given, sound []byte
	for rest := data[12:]; sound == nil; {
		if len(rest) < 8 {
			return nil, 0, 1, errCutOff
		}
		name, size, body := string(rest[:4]), uint64(le.Uint32(rest[4:])), rest[8:]
		if name == "data" && (size == math.MaxUint32 || size == 0) { // its writer couldn't go back
			size = uint64(len(body))
		}
		switch {
		case size > uint64(len(body)):
			return nil, 0, 1, errCutOff
		case name == "fmt ":
			given = body[:size]
		case name == "data":
			sound = body[:size]
		}
		rest = body[min(uint64(len(body)), size+size&1):]
	}
	const extensible, maxRate, maxChannels = 0xfffe, 384_000, 8
	var f wavFormat
	if _, err := binary.Decode(given, le, &f); err != nil {
		return nil, 0, 1, errDamaged
	}
	if f.Kind == extensible && len(given) >= 40 {
		f.Kind = le.Uint16(given[24:])
	}
	if !slices.Contains(wavBits[f.Kind], f.Bits) || f.Channels == 0 || f.Channels > maxChannels || f.Rate == 0 || f.Rate > maxRate ||
		f.Block != f.Channels*f.Bits/8 {
		return nil, 0, 1, errDamaged
	}
	f.BytesSecond = f.Rate * uint32(f.Block)
	sound = sound[:len(sound)/int(f.Block)*int(f.Block)]
	if len(sound) == 0 {
		return nil, 0, 1, errSilent
	}
	const head, format = 44, 16
	clean := append(le.AppendUint32(append(make([]byte, 0, head+len(sound)), "RIFF"...), uint32(head-8+len(sound))), "WAVEfmt "...)
	clean, _ = binary.Append(le.AppendUint32(clean, format), le, &f)
	clean = le.AppendUint32(append(clean, "data"...), uint32(len(sound)))
	return append(clean, sound...), uint64(len(sound)) / uint64(f.Block), uint64(f.Rate), nil
}

func flac(data []byte) (_ []byte, samples, rate uint64, _ error) {
	const head, about, last = 4, 34, 0x80 // bytes before each block of metadata and of the first one; the sign of the last one
	be, blocks := binary.BigEndian, data[len("fLaC"):]
	if len(blocks) < head+about {
		return nil, 0, 1, errCutOff
	}
	info := blocks[head : head+about]
	rate, samples = uint64(be.Uint32(info[10:])>>12), be.Uint64(info[10:])&(1<<36-1)
	switch {
	case be.Uint32(blocks)&^(last<<24) != about, rate == 0:
		return nil, 0, 1, errDamaged
	case samples == 0:
		return nil, 0, 1, errEndless
	}
	for isLast := false; !isLast; {
		if len(blocks) < head {
			return nil, 0, 1, errCutOff
		}
		isLast = blocks[0]&last != 0
		size := head + int(be.Uint32(blocks)&(1<<24-1))
		if size > len(blocks) {
			return nil, 0, 1, errCutOff
		}
		blocks = blocks[size:]
	}
	if len(blocks) < 2 || be.Uint16(blocks)&0xfffe != 0xfff8 { // of a frame
		return nil, 0, 1, errDamaged
	}
	return slices.Concat([]byte("fLaC"), []byte{last, 0, 0, about}, info, blocks), samples, rate, nil
}

// Of frames of MP3: kilobits a second by index, for MPEG-1 and for its successors with lower rates, and samples a second of MPEG-1.
var (
	mp3Bitrates = [2][]int{
		{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
		{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	}
	mp3Rates = []int{44_100, 48_000, 32_000}
	mp3Tags  = [][]byte{[]byte("TAG"), []byte("APETAGEX"), []byte("LYRICSBEGIN")} // which may follow the last frame
)

func mp3(data []byte) (_ []byte, samples, rate uint64, _ error) {
	const head = 10 // of a tag
	for bytes.HasPrefix(data, []byte("ID3")) {
		size := uint32(head)
		for i := 6; i < head && len(data) >= head; i++ {
			size += uint32(data[i]&0x7f) << (7 * (head - 1 - i))
		}
		if uint64(size) > uint64(len(data)) {
			return nil, 0, 1, errCutOff
		}
		data = data[size:]
	}
	data = bytes.TrimLeft(data, "\x00")
	for rest := data; ; {
		size, lasts, hertz := mp3Frame(rest)
		if isWhole := size > 0 && size <= len(rest); isWhole && (rate == 0 || hertz == rate) {
			rest, samples, rate = rest[size:], samples+lasts, hertz
			continue
		}
		isTag := slices.ContainsFunc(mp3Tags, func(tag []byte) bool { return bytes.HasPrefix(rest, tag) })
		if samples == 0 || size <= len(rest) && !isTag && len(bytes.Trim(rest, "\x00")) > 0 {
			return nil, 0, 1, errDamaged
		}
		return data[:len(data)-len(rest)], samples, rate, nil // a last frame that is cut off is left out
	}
}

// mp3Frame reads the head of a frame: its size in bytes, 0 if it is none, its samples, and their rate.
func mp3Frame(data []byte) (size int, samples, rate uint64) {
	if len(data) < 4 || data[0] != 0xff || data[1]&0xe6 != 0xe2 {
		return 0, 0, 0
	}
	version, bitrate, index, padding := data[1]>>3&3, int(data[2]>>4)-1, int(data[2]>>2&3), int(data[2]>>1&1)
	if version == 1 || bitrate < 0 || bitrate == len(mp3Bitrates[0]) || index == len(mp3Rates) {
		return 0, 0, 0
	}
	per, kilobits, hertz := 1152, mp3Bitrates[0][bitrate], mp3Rates[index]
	if version != 3 {
		per, kilobits, hertz = 576, mp3Bitrates[1][bitrate], hertz/2
	}
	if version == 0 {
		hertz /= 2
	}
	return per/8*kilobits*1000/hertz + padding, uint64(per), uint64(hertz)
}
