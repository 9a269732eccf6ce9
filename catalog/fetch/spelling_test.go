package fetch

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestStart_TakesAnotherRepositoryOfTheModel: where the hub has no repository of a model's name, or only one for other programs, those who
// republish models are asked in order, each for the usual spellings.
func TestStart_TakesAnotherRepositoryOfTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gguf := fakehub.Files{"m-Q4_K_M.gguf": fakehub.Random(7, 1000)}
	for _, repo := range []string{
		"lmstudio-community/gemma-3-4b-it-GGUF", "unsloth/gemma-3-4b-it-GGUF", // the order of those who are asked
		"bartowski/zai-org_GLM-9-GGUF",           // with the publisher's name
		"Mistral/Big-Small-2507_gguf",            // the publisher's own
		"unsloth/Qwen7-4B-Instruct-2507-GGUF",    // before the date
		"ggml-org/other-8b-instruct-GGUF",        // a spelling that is asked for later
		"bartowski/other-8b-GGUF",                // than this
		"lmstudio-community/gated-1b-GGUF",       // beside a publisher's own that nobody may read
		"lmstudio-community/safe-1b-GGUF",        // beside safetensors
		"lmstudio-community/mine-1b-GGUF",        // never asked for
		"acme/exact-GGUF", "ggml-org/exact-GGUF", // a repository that there is
	} {
		w.hub.Add(repo, gguf)
	}
	w.hub.Add("corp/safe-1b", fakehub.Files{"config.json": fakehub.Text("{}"), "model.safetensors": fakehub.Random(8, 1000)})
	w.opts.Formats = func() []catalog.Format { return []catalog.Format{catalog.FormatGGUF} }
	w.hub.Add("corp/mine-1b", gguf)
	for name, want := range map[string]string{
		"google/gemma-3-4b": "lmstudio-community/gemma-3-4b-it-GGUF", "zai-org/glm-9": "bartowski/zai-org_GLM-9-GGUF",
		"mistral/big-small-2507": "Mistral/Big-Small-2507_gguf", "qwen/qwen7-4b-2507": "unsloth/Qwen7-4B-Instruct-2507-GGUF",
		"any/other-8b": "bartowski/other-8b-GGUF", "corp/safe-1b": "lmstudio-community/safe-1b-GGUF", "corp/mine-1b": "corp/mine-1b",
		"acme/exact-GGUF": "acme/exact-GGUF", "google/gemma-3-4b@q4_k_m": "lmstudio-community/gemma-3-4b-it-GGUF",
	} {
		p, err := w.open().Preview(t.Context(), Request{Model: name})
		if err != nil || p.Repo != want {
			t.Errorf("%s: %s (%v), want %s", name, p.Repo, err, want)
		}
		if folder, _, _ := strings.Cut(name, "@"); p.Folder != folder {
			t.Errorf("%s goes into %s", name, p.Folder)
		}
		offer, err := w.jobs.Offered(t.Context(), Request{Model: name})
		if err != nil || offer.Repo != want || len(offer.Variants) != 1 {
			t.Errorf("%s: %+v (%v), want %s", name, offer, err, want)
		}
	}
	for _, name := range []string{"nobody/nothing", "google/gemma-3-4b-GGUF", w.hub.URL + "/google/gemma-3-4b"} {
		if _, err := w.jobs.Preview(t.Context(), Request{Model: name}); kindOf(err) != hub.ModelNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}
