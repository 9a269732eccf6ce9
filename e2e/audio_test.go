package e2e

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

const hearingModel = "made/hears"

// withHearing returns a home with the shipped model, and with it as one that has a projector for audio.
func withHearing(t *testing.T) *harness.Home {
	t.Helper()
	const widthOfShipped = 192
	home := harness.NewHome(t)
	path := home.AddModel(hearingModel, "hears-f16.gguf", shippedFile(t, harness.Model))
	if err := randommodel.WriteProjector(filepath.Join(filepath.Dir(path), "mmproj-hears-f16.gguf"), widthOfShipped); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestAudio_OpenAIForNode runs clients/audio.cjs, with an engine that says what it is to say, and with one that listens.
func TestAudio_OpenAIForNode(t *testing.T) {
	t.Parallel()
	const answer = "One two three."
	fake := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": answer}}}})
	s := harness.Start(withHearing(t), harness.Config{Engine: fake.Lines()})
	runNode(t, s, "openai", "audio.cjs", hearingModel, answer)

	s = harness.Start(withHearing(t), harness.Config{})
	if d := s.Get("/api/v1/models/"+hearingModel).Want(t, http.StatusOK); !d.Get("capabilities.audio").Bool() || d.Get("capabilities.vision").Bool() {
		t.Errorf("%s", d.Body)
	}
	runNode(t, s, "openai", "audio.cjs", hearingModel)
	heard := harness.Fields{"type": "input_audio", "input_audio": harness.Fields{"data": base64.StdEncoding.EncodeToString(flac(4)), "format": "flac"}}
	s.Post(harness.ChatPath, harness.Fields{
		"model": hearingModel, "max_tokens": 4, "messages": []harness.Fields{{"role": "user", "content": []harness.Fields{heard}}},
	}).Want(t, http.StatusOK)
}

// flac is a recording of silence, in frames of 4096 samples at 16 kHz, each a constant.
func flac(frames byte) []byte {
	crc := func(data []byte, bits, polynomial uint) (sum uint) {
		for _, b := range data {
			sum ^= uint(b) << (bits - 8)
			for range 8 {
				if sum <<= 1; sum>>bits != 0 {
					sum ^= 1<<bits | polynomial
				}
			}
		}
		return sum
	}
	info := make([]byte, 34)
	info[0], info[2] = 0x10, 0x10
	binary.BigEndian.PutUint64(info[10:], 16_000<<44|15<<36|4096*uint64(frames)) // one channel of 16 bits
	made := append([]byte("fLaC\x80\x00\x00\x22"), info...)
	for i := range frames {
		frame := []byte{0xff, 0xf8, 0xc5, 0x08, i}
		frame = append(append(frame, byte(crc(frame, 8, 0x07))), 0, 0, 0)
		made = binary.BigEndian.AppendUint16(append(made, frame...), uint16(crc(frame, 16, 0x8005)))
	}
	return made
}
