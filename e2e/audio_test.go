package e2e

import (
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
}
