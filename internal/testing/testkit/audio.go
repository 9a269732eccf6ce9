package testkit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// WAV returns a recording of silence, of 16,000 samples a second.
func WAV(samples uint32) []byte {
	le := binary.LittleEndian
	size := 2 * samples
	made := append(le.AppendUint32([]byte("RIFF"), 36+size), "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	made = append(le.AppendUint32(le.AppendUint32(made, 16_000), 32_000), "\x02\x00\x10\x00data"...)
	return append(le.AppendUint32(made, size), make([]byte, size)...)
}

// MP3 returns a recording whose frames last 26 ms each, and which can't be decoded.
func MP3(frames int) []byte {
	const size = 417
	return bytes.Repeat(append([]byte("\xff\xfb\x90\x00"), make([]byte, size-4)...), frames)
}

// FLAC returns a recording of 16,000 samples a second, which can't be decoded.
func FLAC(samples uint64) []byte {
	info := make([]byte, 34)
	binary.BigEndian.PutUint64(info[10:], 16_000<<44|15<<36|samples) // one channel of 16 bits
	return append(append([]byte("fLaC\x80\x00\x00\x22"), info...), "\xff\xf8\x00\x00"...)
}

// Sound is a short WAV file in base64.
var Sound = base64.StdEncoding.EncodeToString(WAV(8))
