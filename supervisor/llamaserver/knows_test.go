package llamaserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// engineWith makes a runtime of files with some text each, and returns its process.
func engineWith(t *testing.T, files map[string]string) *Process {
	t.Helper()
	runtimes := t.TempDir()
	root := filepath.Join(runtimes, "llama.cpp-b1-cpu")
	files["bin/llama-server"] += "#!/bin/sh\n"
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Process{
		Locate:   func() (string, error) { return filepath.Join(root, "bin", "llama-server"), nil },
		Runtimes: runtimes,
		TooOld:   func(string) string { return "llama.cpp b1 is too old; get another" },
	}
}

const (
	loaderText  = "\x7fELF\x00\x01llama\x00qwen2\x00nomic-bert\x00unknown model architecture: '\x00"
	tensorsText = "\x00dequantize_row_q4_0\x00dequantize_row_tq1_0\x00dequantize_row_mxfp4\x00"
)

func TestProcess_Knows(t *testing.T) {
	t.Parallel()
	p := engineWith(t, map[string]string{"lib/libllama.so.0.7.0": loaderText, "lib/libggml-base.so.0": tensorsText})
	for _, tt := range []struct {
		m    catalog.Model
		want string
	}{
		{catalog.Model{Architecture: "llama", NewestType: 39}, ""},
		{catalog.Model{Architecture: "bert"}, ""}, // the end of another name
		{catalog.Model{Architecture: "llam"}, `unknown architecture "llam". llama.cpp b1 is too old; get another`},
		{catalog.Model{Architecture: "qwen9"}, `unknown architecture "qwen9". llama.cpp b1 is too old; get another`},
		{catalog.Model{Architecture: "llama", NewestType: 41}, "unknown type of weights q1_0. llama.cpp b1 is too old; get another"},
		{catalog.Model{Architecture: "llama", NewestType: 99}, ""}, // nobody here knows its name
	} {
		if got := p.Knows()(&tt.m); got != tt.want {
			t.Errorf("%s of type %d: %q, want %q", tt.m.Architecture, tt.m.NewestType, got, tt.want)
		}
	}
	for name, files := range map[string]map[string]string{
		"no library":          {},
		"another kind of it":  {"lib/libllama.so": "unknown model architecture: '\x00deepseek\x00"},
		"no names in it":      {"lib/libllama.so": strings.ReplaceAll(loaderText, "unknown model", "strange")},
		"a file of this name": {"lib/libllama.so/x": loaderText},
	} {
		if knows := engineWith(t, files).Knows(); knows != nil {
			t.Errorf("%s: %q", name, knows(&catalog.Model{Architecture: "qwen9"}))
		}
	}
	if knows := (&Process{Locate: func() (string, error) { return "", os.ErrNotExist }}).Knows(); knows != nil {
		t.Error("without an engine something is known")
	}
}

// TestProcess_Line_SaysWhatToDoAboutAnOldEngine also for what only the load shows.
func TestProcess_Line_SaysWhatToDoAboutAnOldEngine(t *testing.T) {
	t.Parallel()
	p := engineWith(t, map[string]string{})
	for _, said := range []string{
		"unknown model architecture: 'qwen9'", "error loading model vocabulary: unknown pre-tokenizer type: 'qwen9'",
		"gguf_init_from_reader: tensor 'a' has invalid ggml type 99. should be in [0, 43)",
	} {
		signals := p.Line("0.00.080.100 E llama_model_load: error loading model: " + said)
		if len(signals) != 1 || signals[0].Kind != schedule.SignalTrouble || !strings.HasSuffix(signals[0].Text, ". llama.cpp b1 is too old; get another") {
			t.Errorf("%s: %+v", said, signals)
		}
	}
	if signals := p.Line("error loading model: it is truncated"); len(signals) != 1 || strings.Contains(signals[0].Text, "too old") {
		t.Errorf("%+v", signals)
	}
}

func TestProcess_Prepare_RefusesADrafterOfAnUnknownKind(t *testing.T) {
	t.Parallel()
	p := engineWith(t, map[string]string{})
	path, _ := p.Locate()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p.probed.Store(path, probedBuild{process.Build{Path: path, Flags: flagsOf("--spec-type none,draft-simple,draft-mtp\n")}, info.Size(), info.ModTime()})
	for drafting, want := range map[string]string{
		"": "", "mtp": "", "dspark": "the engine can't draft with d, which is for draft-dspark. llama.cpp b1 is too old; get another",
		"ngram-mod": "the engine can't draft with its option draft_model, which is for ngram-mod. llama.cpp b1 is too old; get another",
	} {
		spec := &schedule.Spec{Draft: &catalog.Model{Key: "d", Drafting: drafting}}
		if strings.HasPrefix(drafting, "ngram") {
			spec = &schedule.Spec{SelfDraft: drafting}
		}
		got := ""
		if err := p.Prepare(t.Context(), &process.Launch{Spec: spec}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", drafting, got, want)
		}
	}
}

// TestProcess_Predicts only where both the command line and the library can.
func TestProcess_Predicts(t *testing.T) {
	t.Parallel()
	const heads = "N18llama_model_qwen359graph_mtpE\x00N22llama_model_glm4_moe9graph_mtpE\x00"
	for name, tt := range map[string]struct {
		library, types, arch string
		layers               int
		want                 bool
	}{
		"it can":               {heads, "none,draft-mtp", "qwen35", 1, true},
		"in other words":       {heads, "none,draft-mtp,ngram-mod", "glm4moe", 2, true},
		"no layers":            {heads, "none,draft-mtp", "qwen35", 0, false},
		"another architecture": {heads, "none,draft-mtp", "qwen3", 1, false},
		"not by its help":      {heads, "none,draft-mtpx", "qwen35", 1, false},
		"nothing is known":     {"", "none,draft-mtp", "qwen35", 1, false},
	} {
		p := engineWith(t, map[string]string{"lib/libllama.so.0.7.0": loaderText + tt.library})
		path, _ := p.Locate()
		if p.Predicts(&catalog.Model{Architecture: tt.arch, Heads: tt.layers}) {
			t.Errorf("%s: before the engine was asked", name)
		}
		p.probed.Store(path, probedBuild{build: process.Build{Path: path, Flags: flagsOf("--spec-type " + tt.types + "\n")}})
		if got := p.Predicts(&catalog.Model{Architecture: tt.arch, Heads: tt.layers}); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
