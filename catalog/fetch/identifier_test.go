package fetch

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

func TestStart_AQuantizationNeedsAURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.open().Start(t.Context(), Request{Model: "qwen/qwen3-4b", Quantization: "Q4_K_M"})
	if kindOf(err) != hub.NotImplemented || hub.AsError(err).Param != "quantization" {
		t.Error(err)
	}
}

// TestStart_InTheFormatOfTheMoment: an identifier means the MLX repository only while an engine for that is there and preferred.
func TestStart_InTheFormatOfTheMoment(t *testing.T) {
	t.Parallel()
	for repo, tt := range map[string]struct {
		formats []catalog.Format
		files   int
	}{
		"Qwen/Qwen3-4B-GGUF":          {[]catalog.Format{catalog.FormatGGUF}, 1},
		"mlx-community/Qwen3-4B-4bit": {[]catalog.Format{catalog.FormatGGUF, catalog.FormatMLX}, 2},
	} {
		t.Run(repo, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var formats []catalog.Format
			w.opts.Formats, w.opts.Prefers = func() []catalog.Format { return formats }, catalog.FormatMLX
			w.hub.Add("Qwen/Qwen3-4B-GGUF", w.hubFiles())
			w.hub.Add("mlx-community/Qwen3-4B-4bit", fakehub.Files{
				"config.json": fakehub.Text("{}"), "model.safetensors": fakehub.Random(1, 1<<10), "adapters.safetensors": fakehub.Random(2,
					1<<10),
			})
			jobs := w.open()
			formats = tt.formats // an engine comes and goes
			job, err := jobs.Start(t.Context(), Request{Model: "qwen/qwen3-4b"})
			if err != nil {
				t.Fatal(err)
			}
			if job = w.completes(job); job.Repo != repo || job.Dir != w.path("qwen/qwen3-4b") || len(job.Files) != tt.files {
				t.Errorf("%+v", job)
			}
		})
	}
}

// TestStart_ByCatalogIdentifier puts the model where it gets the requested key.
func TestStart_ByCatalogIdentifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add("Qwen/Qwen3-4B-GGUF", w.hubFiles())
	job, err := w.open().Start(t.Context(), Request{Model: "Qwen3-4B"})
	if err != nil {
		t.Fatal(err)
	}
	if job = w.completes(job); job.Dir != w.path("qwen/qwen3-4b") || job.Repo != "Qwen/Qwen3-4B-GGUF" {
		t.Errorf("%+v", job)
	}
}

// TestStart_ByCatalogIdentifierWhatWasFetchedByURL: it isn't downloaded again.
func TestStart_ByCatalogIdentifierWhatWasFetchedByURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add("Qwen/Qwen3-4B-GGUF", w.hubFiles())
	w.completes(w.start("Qwen/Qwen3-4B-GGUF"))
	job, err := w.jobs.Start(t.Context(), Request{Model: "qwen/qwen3-4b"})
	if err != nil || job.State != AlreadyDownloaded || job.Dir != w.path("Qwen/Qwen3-4B-GGUF") {
		t.Errorf("%+v, %v", job, err)
	}
}
