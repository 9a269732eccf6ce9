package audio_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/audio"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// with returns a copy of a file with other bytes at a place.
func with(file []byte, at int, other string) []byte {
	file = bytes.Clone(file)
	copy(file[at:], other)
	return file
}

// insert returns a copy of a file with more bytes at a place.
func insert(file []byte, at int, more string) []byte {
	return append(append(bytes.Clone(file[:at]), more...), file[at:]...)
}

func TestNormalize_KeepsNothingButTheSound(t *testing.T) {
	t.Parallel()
	wav, mp3, flac := testkit.WAV(16_000), testkit.MP3(100), testkit.FLAC(32_000)
	extensible := string(binary.LittleEndian.AppendUint32(nil, 40)) + string(wav[20:22])
	extensible = extensible[:4] + "\xfe\xff" + string(wav[22:36]) + "\x16\x00\x10\x00\x04\x00\x00\x00\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
	tag := "ID3\x04\x00\x00\x00\x00\x01\x00" + strings.Repeat("t", 128)
	for name, tt := range map[string]struct {
		given, want []byte
		kind        string
		lasts       time.Duration
	}{
		"WAV":                      {wav, wav, "wav", time.Second},
		"WAV with a tag":           {insert(wav, 12, "LIST\x03\x00\x00\x00abc\x00"), wav, "wav", time.Second},
		"WAV with more behind":     {append(bytes.Clone(wav), "LIST\x02\x00\x00\x00ab"...), wav, "wav", time.Second},
		"WAV from a pipe":          {with(with(wav, 40, "\xff\xff\xff\xff"), 4, "\xff\xff\xff\xff"), wav, "wav", time.Second},
		"WAV of no size":           {with(wav, 40, "\x00\x00\x00\x00"), wav, "wav", time.Second},
		"WAV, extensible":          {append([]byte(string(wav[:16])+extensible), wav[36:]...), append([]byte("RIFF\x3c\x7d\x00\x00"+string(wav[8:16])+extensible), wav[36:]...), "wav", time.Second},
		"WAV with half a sample":   {with(append(bytes.Clone(wav), 7), 40, "\x01\x7d"), wav, "wav", time.Second},
		"MP3":                      {mp3, mp3, "mp3", 100 * 1152 * time.Second / 44_100},
		"MP3 with tags":            {append([]byte(tag+tag), append(append(bytes.Clone(mp3), with(mp3, 2, "\x94")...), "TAGabc"...)...), mp3, "mp3", 100 * 1152 * time.Second / 44_100},
		"MP3 whose end is missing": {append(bytes.Clone(mp3), mp3[:100]...), mp3, "mp3", 100 * 1152 * time.Second / 44_100},
		"MP3 of a low rate":        {bytes.Repeat(append([]byte("\xff\xe3\x28\xc0"), make([]byte, 140)...), 10), bytes.Repeat(append([]byte("\xff\xe3\x28\xc0"), make([]byte, 140)...), 10), "mp3", 10 * 576 * time.Second / 8000},
		"FLAC":                     {flac, flac, "flac", 2 * time.Second},
		"FLAC with a picture":      {insert(with(flac, 4, "\x00"), 42, "\x86\x00\x00\x02ab"), flac, "flac", 2 * time.Second},
		"FLAC with several":        {insert(with(flac, 4, "\x00"), 42, "\x04\x00\x00\x01a\x81\x00\x00\x00"), flac, "flac", 2 * time.Second},
	} {
		got, kind, lasts, err := audio.Normalize(tt.given)
		if err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v, %d bytes, want %d", name, err, len(got), len(tt.want))
		}
		if kind != tt.kind || lasts.Round(time.Millisecond) != tt.lasts.Round(time.Millisecond) {
			t.Errorf("%s: %s of %s, want %s of %s", name, kind, lasts, tt.kind, tt.lasts)
		}
		if again, _, _, err := audio.Normalize(got); err != nil || !bytes.Equal(got, again) {
			t.Errorf("%s, again: %v", name, err)
		}
		for cut := range min(len(tt.given), 200) { // no length is beyond the end
			_, _, _, _ = audio.Normalize(tt.given[:cut])
		}
	}
}

func TestNormalize_Refuses(t *testing.T) {
	t.Parallel()
	wav, mp3, flac := testkit.WAV(16), testkit.MP3(3), testkit.FLAC(16)
	const damaged = "is damaged, cut off, or of a variant that this server can't read"
	const format = "is not a WAV, MP3 or FLAC file"
	for name, tt := range map[string]struct {
		given []byte
		want  string
	}{
		"nothing":                   {nil, format},
		"a text":                    {[]byte("Hello, this is no sound."), format},
		"a WebP image":              {with(wav, 8, "WEBP"), format},
		"MPEG's layer II":           {[]byte("\xff\xfd\x90\x00"), format},
		"too large":                 {make([]byte, audio.MaxBytes+1), "is larger than 20 MiB"},
		"WAV cut off":               {wav[:60], damaged},
		"WAV without sound":         {wav[:36], damaged},
		"WAV of no samples":         {testkit.WAV(0), damaged},
		"WAV without a format":      {append(bytes.Clone(wav[:12]), wav[36:]...), damaged},
		"WAV with a short format":   {append([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x02\x00\x00\x00\x01\x00"), wav[36:]...), damaged},
		"WAV of ADPCM":              {with(wav, 20, "\x11"), damaged},
		"WAV, extensible and short": {with(wav, 20, "\xfe\xff"), damaged},
		"WAV of no channels":        {with(wav, 22, "\x00"), damaged},
		"WAV of many channels":      {with(wav, 22, "\x09"), damaged},
		"WAV of no rate":            {with(wav, 24, "\x00\x00\x00\x00"), damaged},
		"WAV of a high rate":        {with(wav, 24, "\x00\x00\x00\x10"), damaged},
		"WAV of wrong blocks":       {with(wav, 32, "\x04"), damaged},
		"WAV of no blocks":          {with(wav, 32, "\x00"), damaged},
		"WAV of odd bits":           {with(wav, 34, "\x0c"), damaged},
		"WAV of a low rate":         {with(testkit.WAV(3601), 24, "\x01\x00\x00\x00"), "is longer than 60 minutes"},
		"MP3 cut off":               {mp3[:300], damaged},
		"MP3 with a long tag":       {[]byte("ID3\x04\x00\x00\x7f\x7f\x7f\x7fab"), damaged},
		"MP3 with a short tag":      {[]byte("ID3\x04\x00\x00\x00\x00\x00\x00ID3"), damaged},
		"MP3 of nothing but a tag":  {[]byte("ID3\x04\x00\x00\x00\x00\x00\x02ab"), damaged},
		"MP3 of no bitrate":         {with(mp3, 2, "\x00"), damaged},
		"MP3 of a bad bitrate":      {with(mp3, 2, "\xf0"), damaged},
		"MP3 of a bad rate":         {with(mp3, 2, "\x9c"), damaged},
		"MP3 with much behind":      {append(bytes.Clone(mp3), strings.Repeat("<script>", 10_000)...), damaged},
		"FLAC cut off":              {flac[:30], damaged},
		"FLAC without frames":       {flac[:42], damaged},
		"FLAC without an end":       {with(flac, 4, "\x00")[:42], damaged},
		"FLAC with a long block":    {append(with(flac[:42], 4, "\x00"), "\x84\x00\xff\xff"...), damaged},
		"FLAC that begins wrong":    {with(flac, 4, "\x84"), damaged},
		"FLAC of no rate":           {with(flac, 18, "\x00\x00\x00"), damaged},
		"FLAC of no length":         {testkit.FLAC(0), damaged},
		"FLAC of something else":    {with(flac, 42, "RIFF"), damaged},
		"FLAC of an hour and more":  {testkit.FLAC(3601 * 16_000), "is longer than 60 minutes"},
	} {
		got, _, _, err := audio.Normalize(tt.given)
		if err == nil || err.Error() != tt.want || got != nil {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, file := range [][]byte{testkit.WAV(4), testkit.MP3(2), testkit.FLAC(4), []byte("ID3\x04\x00\x00\x00\x00\x00\x01x")} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		clean, kind, lasts, err := audio.Normalize(data)
		if err != nil {
			return
		}
		again, sameKind, same, err := audio.Normalize(clean)
		if err != nil || !bytes.Equal(clean, again) || sameKind != kind || same != lasts || len(clean) > len(data)+44 {
			t.Errorf("%v, %v and %v, %d and %d bytes", err, lasts, same, len(clean), len(again))
		}
	})
}
