package catalog

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree is a folder with files by path, and links with their targets.
type tree struct {
	files files
	links map[string]string
}

func (tr tree) plant(t *testing.T, root string) {
	t.Helper()
	for rel, content := range tr.files {
		write(t, root, rel, content)
	}
	for rel, target := range tr.links {
		link(t, root, rel, target)
	}
}

// sighting holds the properties that the tables check.
type sighting struct {
	Path      string
	Publisher string
	Layout    Layout
	Projector string
	Reason    string
}

// sightings returns the models below a root, by key.
func sightings(t *testing.T, c *Catalog, root string) map[string]sighting {
	t.Helper()
	below := func(path string) string {
		return filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator)))
	}
	all := map[string]sighting{}
	for _, m := range models(t, c) {
		s := sighting{Path: below(m.Path), Publisher: m.Publisher, Layout: m.Layout, Projector: below(m.Projector)}
		if m.Err != nil {
			s.Reason = m.Err.Error()
		}
		all[m.Key] = s
	}
	return all
}

var (
	seesFile = projectorFile(nil).bytes()
	loraFile = llama("LoRA", map[string]any{"general.type": "adapter", "adapter.type": "lora"}).bytes()
)

const (
	digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	digestC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// ollamaManifest returns a manifest with layers, given as pairs of the last word of a type and a digest.
func ollamaManifest(layers ...string) []byte {
	var all []string
	for i := 0; i < len(layers); i += 2 {
		all = append(all, `{"mediaType":"application/vnd.ollama.image.`+layers[i]+`","digest":"`+layers[i+1]+`","size":1}`)
	}
	return []byte(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",` +
		`"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:` + digestC + `","size":1},` +
		`"layers":[` + strings.Join(all, ",") + `]}`)
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	const hub = "models--Qwen--Qwen3-4B-GGUF/"
	plain := func(path, publisher string) sighting {
		return sighting{Path: path, Publisher: publisher, Layout: LayoutPlain}
	}
	for name, tt := range map[string]struct {
		tree tree
		want map[string]sighting
	}{
		"LM Studio": {
			tree{files: files{
				"models/lmstudio-community/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf":                      f32,
				"models/lmstudio-community/Qwen3-4B-GGUF/downloading_Qwen3-4B-Q8_0.gguf.part":       f16,
				"models/lmstudio-community/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf":            f32,
				"models/lmstudio-community/gemma-3-4b-it-GGUF/mmproj-model-f16.gguf":                seesFile,
				"models/nomic-ai/nomic-embed-text-v1.5-GGUF/nomic-embed-text-v1.5.Q4_K_M.gguf":      f16,
				"conversations/1.conversation.json":                                                 nil,
				"config-presets/preset.json":                                                        nil,
				".internal/model-index-cache.json":                                                  nil,
				"models/lmstudio-community/gemma-3-4b-it-GGUF/lora/gemma-3-4b-it-adapter-lora.gguf": loraFile,
			}},
			map[string]sighting{
				"lmstudio-community/qwen3-4b": plain("models/lmstudio-community/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf", "lmstudio-community"),
				"lmstudio-community/gemma-3-4b-it": {
					"models/lmstudio-community/gemma-3-4b-it-GGUF/gemma-3-4b-it-Q4_K_M.gguf", "lmstudio-community", LayoutPlain,
					"models/lmstudio-community/gemma-3-4b-it-GGUF/mmproj-model-f16.gguf", "",
				},
				"nomic-ai/nomic-embed-text-v1.5": plain("models/nomic-ai/nomic-embed-text-v1.5-GGUF/nomic-embed-text-v1.5.Q4_K_M.gguf", "nomic-ai"),
			},
		},
		"a folder for each quantization": {
			tree{files: files{
				"unsloth/Big-GGUF/mmproj-F16.gguf":                                  seesFile,
				"unsloth/Big-GGUF/Big-F32.gguf":                                     f32,
				"unsloth/Big-GGUF/UD-Q4_K_XL/Big-UD-Q4_K_XL-00001-of-00002.gguf":    shard(1, 2, map[string]int{"a": 256}),
				"unsloth/Big-GGUF/UD-Q4_K_XL/Big-UD-Q4_K_XL-00002-of-00002.gguf":    shard(2, 2, map[string]int{"b": 640, "c": 32}),
				"bartowski/Big-GGUF/Big-Q8_0/Big-Q8_0.gguf":                         f16,
				"nested/unsloth/Other-Q4_K_M/other.gguf":                            f16,
				"unsloth/Big-GGUF/other/x.gguf":                                     f16,
				"TheBloke/Some-Q4_0/some.gguf":                                      f16,
				"deep/er/still/publisher/Repo-GGUF/Q4_K_M/Repo-Q4_K_M.gguf":         f16,
				"deep/er/still/publisher/Repo-GGUF/Q4_K_M/mmproj-of-repo-Q4_K.gguf": seesFile,
			}},
			map[string]sighting{
				"unsloth/big@f32": {"unsloth/Big-GGUF/Big-F32.gguf", "unsloth", LayoutPlain, "unsloth/Big-GGUF/mmproj-F16.gguf", ""},
				"unsloth/big@ud-q4_k_xl": {
					"unsloth/Big-GGUF/UD-Q4_K_XL/Big-UD-Q4_K_XL-00001-of-00002.gguf", "unsloth", LayoutPlain, "unsloth/Big-GGUF/mmproj-F16.gguf", "",
				},
				"bartowski/big":        plain("bartowski/Big-GGUF/Big-Q8_0/Big-Q8_0.gguf", "bartowski"),
				"unsloth/other-q4_k_m": plain("nested/unsloth/Other-Q4_K_M/other.gguf", "unsloth"),
				"big-gguf/other":       plain("unsloth/Big-GGUF/other/x.gguf", "Big-GGUF"),
				"thebloke/some-q4_0":   plain("TheBloke/Some-Q4_0/some.gguf", "TheBloke"),
				"publisher/repo": {
					"deep/er/still/publisher/Repo-GGUF/Q4_K_M/Repo-Q4_K_M.gguf", "publisher", LayoutPlain,
					"deep/er/still/publisher/Repo-GGUF/Q4_K_M/mmproj-of-repo-Q4_K.gguf", "",
				},
			},
		},
		"the hub's cache": {
			tree{
				files{
					hub + "blobs/1": f32, hub + "blobs/2": f16, hub + "blobs/3.incomplete": f16[:300], hub + "refs/main": []byte("new\n"),
					hub + ".no_exist/new/config.json": nil, ".locks/models--Qwen--Qwen3-4B-GGUF/1.lock": nil,
					"models--org--sees/blobs/1": f32, "models--org--sees/blobs/2": seesFile,
					"datasets--org--data/snapshots/1/data.gguf": f32,
					"models--gpt2/snapshots/1/gpt2.gguf":        f32,
					"models--org--none/refs/main":               []byte("1"), "models--org--none/snapshots/1/README.md": nil,
					"version.txt": nil,
				},
				map[string]string{
					hub + "snapshots/old/Qwen3-4B-f32.gguf":                  "../../blobs/1",
					hub + "snapshots/old/Qwen3-4B-old.gguf":                  "../../blobs/1",
					hub + "snapshots/new/Qwen3-4B-f32.gguf":                  "../../blobs/1",
					hub + "snapshots/new/sub/Qwen3-4B-f16.gguf":              "../../../blobs/2",
					hub + "snapshots/new/Qwen3-4B-Q8_0.gguf":                 "../../blobs/3", // still being fetched
					"models--org--sees/snapshots/1/model.gguf":               "../../blobs/1",
					"models--org--sees/snapshots/1/mmproj/mmproj-model.gguf": "../../../blobs/2",
				},
			},
			map[string]sighting{
				"qwen/qwen3-4b@f32": {Path: hub + "snapshots/new/Qwen3-4B-f32.gguf", Publisher: "Qwen", Layout: LayoutHub},
				"qwen/qwen3-4b@f16": {Path: hub + "snapshots/new/sub/Qwen3-4B-f16.gguf", Publisher: "Qwen", Layout: LayoutHub},
				"org/sees": {
					"models--org--sees/snapshots/1/model.gguf", "org", LayoutHub, "models--org--sees/snapshots/1/mmproj/mmproj-model.gguf", "",
				},
				"local/gpt2": {Path: "models--gpt2/snapshots/1/gpt2.gguf", Publisher: "local", Layout: LayoutHub},
			},
		},
		"llama.cpp's cache": {
			tree{files: files{
				"ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-F32.gguf":      f32,
				"ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-F16.gguf":      f16,
				"ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-F16.gguf.json": nil,
				"ggml-org_gemma-3-4b-it-GGUF_mmproj-model-f16.gguf":       seesFile,
				"manifest=ggml-org=gemma-3-4b-it-GGUF=latest.json":        []byte(`{"ggufFile":{"rfilename":"gemma-3-4b-it-F32.gguf"}}`),
				"user_name_my_model_tiny.gguf":                            f32,
				"user_name_my_model_tiny.gguf.json":                       []byte(`{"url":"https://hub.example/user_name/my_model/resolve/main/tiny.gguf"}`),
				"someone_Tiny-GGUF_tiny_f16.gguf":                         f16,
				"someone_Tiny-GGUF_tiny_f16.gguf.etag":                    []byte("etag"),
				"someone_Tiny-GGUF_more.gguf.downloadInProgress":          f16,
				"else_where_tiny.gguf":                                    f16,
				"else_where_tiny.gguf.json":                               []byte(`{"url":7`),
				"org_Two_B-GGUF_a.gguf":                                   f32,
				"org_Two_B-GGUF_a.gguf.etag":                              nil,
				"org_Two_B-GGUF_b.gguf":                                   f16,
				"org_Two_B-GGUF_b.gguf.etag":                              nil,
				"org_Two_B-GGUF_mmproj-a.gguf":                            seesFile,
				"org_Two_B-GGUF_mmproj-a.gguf.etag":                       nil,
				"org_Two_B-GGUF_mmproj-b.gguf":                            seesFile,
				"org_Two_B-GGUF_mmproj-b.gguf.etag":                       nil,
				"big_Split-GGUF_s-00001-of-00002.gguf":                    shard(1, 2, map[string]int{"a": 256}),
				"big_Split-GGUF_s-00001-of-00002.gguf.json":               nil,
				"big_Split-GGUF_s-00002-of-00002.gguf":                    shard(2, 2, map[string]int{"b": 640, "c": 32}),
				"by_hand.gguf":                                            f16,
			}},
			map[string]sighting{
				"ggml-org/gemma-3-4b-it@f32": {
					"ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-F32.gguf", "ggml-org", LayoutCache, "ggml-org_gemma-3-4b-it-GGUF_mmproj-model-f16.gguf", "",
				},
				"ggml-org/gemma-3-4b-it@f16": {
					"ggml-org_gemma-3-4b-it-GGUF_gemma-3-4b-it-F16.gguf", "ggml-org", LayoutCache, "ggml-org_gemma-3-4b-it-GGUF_mmproj-model-f16.gguf", "",
				},
				"user_name/my_model": {Path: "user_name_my_model_tiny.gguf", Publisher: "user_name", Layout: LayoutCache},
				"someone/tiny":       {Path: "someone_Tiny-GGUF_tiny_f16.gguf", Publisher: "someone", Layout: LayoutCache},
				"else/where":         {Path: "else_where_tiny.gguf", Publisher: "else", Layout: LayoutCache},
				"org/two_b@f32":      {"org_Two_B-GGUF_a.gguf", "org", LayoutCache, "org_Two_B-GGUF_mmproj-a.gguf", ""},
				"org/two_b@f16":      {"org_Two_B-GGUF_b.gguf", "org", LayoutCache, "org_Two_B-GGUF_mmproj-b.gguf", ""},
				"big/split":          {Path: "big_Split-GGUF_s-00001-of-00002.gguf", Publisher: "big", Layout: LayoutCache},
				"local/by_hand":      plain("by_hand.gguf", "local"),
			},
		},
		"Ollama's store": {
			tree{files: files{
				"models/blobs/sha256-" + digestA:                                 f32,
				"models/blobs/sha256-" + digestB:                                 seesFile,
				"models/blobs/sha256-" + digestC + "-partial":                    f16,
				"models/blobs/sha256:" + strings.Repeat("d", 64):                 f16,
				"models/manifests/registry.ollama.ai/library/llama3.2/latest":    ollamaManifest("model", "sha256:"+digestA, "template", "sha256:"+digestC),
				"models/manifests/registry.ollama.ai/library/llama3.2/1b":        ollamaManifest("model", "sha256:"+digestA),
				"models/manifests/registry.ollama.ai/library/gemma3/4b":          ollamaManifest("projector", "sha256:"+digestB, "model", "sha256:"+digestA),
				"models/manifests/registry.ollama.ai/library/two/1.5b":           ollamaManifest("model", "sha256:"+digestA, "projector", "sha256:"+digestB),
				"models/manifests/registry.ollama.ai/library/two/latest":         ollamaManifest("model", "sha256:"+digestA, "projector", "sha256:"+digestB),
				"models/manifests/registry.ollama.ai/library/two/1.5b-text":      ollamaManifest("model", "sha256:"+digestA),
				"models/manifests/hf.co/bartowski/Old-GGUF/Q4_K_M":               ollamaManifest("model", "sha256:"+strings.Repeat("d", 64)),
				"models/manifests/registry.ollama.ai/library/half/latest":        ollamaManifest("model", "sha256:"+digestC),
				"models/manifests/registry.ollama.ai/me/tuned/latest":            ollamaManifest("model", "sha256:"+digestA, "adapter", "sha256:"+digestB),
				"models/manifests/registry.ollama.ai/library/cloud/latest":       ollamaManifest("license", "sha256:"+digestC),
				"models/manifests/registry.ollama.ai/library/evil/latest":        ollamaManifest("model", "sha256:../../../../etc/passwd"),
				"models/manifests/registry.ollama.ai/library/text/latest":        []byte("no JSON"),
				"models/manifests/registry.ollama.ai/library/.DS_Store":          nil,
				"models/manifests/registry.ollama.ai/library/llama3.2/.DS_Store": nil,
				"models/manifests/registry.ollama.ai/too-short":                  ollamaManifest("model", "sha256:"+digestA),
				"models/manifests/registry.ollama.ai/library/large/latest":       slices.Concat(ollamaManifest("model", "sha256:"+digestA), make([]byte, maxManifest)),
				"id_ed25519": nil,
			}},
			map[string]sighting{
				"library/llama3.2": {Path: "models/blobs/sha256-" + digestA, Publisher: "library", Layout: LayoutOllama},
				"library/gemma3": {
					"models/blobs/sha256-" + digestA, "library", LayoutOllama, "models/blobs/sha256-" + digestB, "",
				},
				"library/two@1.5b":      {"models/blobs/sha256-" + digestA, "library", LayoutOllama, "models/blobs/sha256-" + digestB, ""},
				"library/two@1.5b-text": {Path: "models/blobs/sha256-" + digestA, Publisher: "library", Layout: LayoutOllama},
				"bartowski/old":         {Path: "models/blobs/sha256:" + strings.Repeat("d", 64), Publisher: "bartowski", Layout: LayoutOllama},
				"library/half": {
					Path: "models/blobs/sha256-" + digestC, Publisher: "library", Layout: LayoutOllama,
					Reason: "its blob sha256-" + digestC + " is missing: pull it again with Ollama",
				},
				"me/tuned": {Path: "models/blobs/sha256-" + digestA, Publisher: "me", Layout: LayoutOllama, Reason: errAdapter.Error()},
			},
		},
		"all of them below one": {
			tree{
				files{
					"lm-studio/models/a/Plain-GGUF/p.gguf":           f32,
					"huggingface/hub/models--b--Hub-GGUF/blobs/1":    f32,
					"llama.cpp/c_Cache-GGUF_x.gguf":                  f32,
					"llama.cpp/c_Cache-GGUF_x.gguf.etag":             nil,
					"ollama/models/blobs/sha256-" + digestA:          f32,
					"ollama/models/manifests/registry/d/store/small": ollamaManifest("model", "sha256:"+digestA),
				},
				map[string]string{"huggingface/hub/models--b--Hub-GGUF/snapshots/1/h.gguf": "../../blobs/1"},
			},
			map[string]sighting{
				"a/plain": plain("lm-studio/models/a/Plain-GGUF/p.gguf", "a"),
				"b/hub":   {Path: "huggingface/hub/models--b--Hub-GGUF/snapshots/1/h.gguf", Publisher: "b", Layout: LayoutHub},
				"c/cache": {Path: "llama.cpp/c_Cache-GGUF_x.gguf", Publisher: "c", Layout: LayoutCache},
				"d/store": {Path: "ollama/models/blobs/sha256-" + digestA, Publisher: "d", Layout: LayoutOllama},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			tt.tree.plant(t, root)
			if diff := cmp.Diff(tt.want, sightings(t, c, root)); diff != "" {
				t.Errorf("models by key (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHub_Revisions: refs/main is used, or if it has no model, the newest revision that has one.
func TestHub_Revisions(t *testing.T) {
	t.Parallel()
	const repo = "models--p--m/"
	snapshots := files{repo + "snapshots/older/o.gguf": f32, repo + "snapshots/newer/n.gguf": f32, repo + "snapshots/empty/README.md": nil}
	for name, tt := range map[string]struct {
		ref  string
		want string
	}{
		"named":         {"older", "older/o.gguf"},
		"not named":     {"", "newer/n.gguf"},
		"without model": {"empty", "newer/n.gguf"},
		"gone":          {"gone", "newer/n.gguf"},
		"leading out":   {"../../../..", "newer/n.gguf"},
		"too long":      {strings.Repeat("older", 100), "newer/n.gguf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(snapshots)
			if tt.ref != "" {
				all[repo+"refs/main"] = []byte(tt.ref)
			}
			c, root := catalogOf(t, all)
			for i, revision := range []string{"older", "newer", "empty"} {
				touch(t, filepath.Join(root, repo, "snapshots", revision), time.Unix(int64(1_000_000+i), 0))
			}
			want := map[string]string{"p/m": repo + "snapshots/" + tt.want}
			if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRoots_TheSameFileIsOneModel, listed in the first root that holds it, unless another root links to it by another name.
func TestRoots_TheSameFileIsOneModel(t *testing.T) {
	t.Parallel()
	home, studio := t.TempDir(), t.TempDir()
	write(t, studio, "a/Linked-GGUF/x.gguf", f32)
	write(t, studio, "a/Hard-GGUF/x.gguf", f32)
	write(t, studio, "a/Only-GGUF/x.gguf", f32)
	link(t, home, "mine/linked/x.gguf", filepath.Join(studio, "a", "Linked-GGUF", "x.gguf"))
	if err := os.MkdirAll(filepath.Join(home, "mine", "hard"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(studio, "a", "Hard-GGUF", "x.gguf"), filepath.Join(home, "mine", "hard", "x.gguf")); err != nil {
		t.Fatal(err)
	}
	same := t.TempDir()
	link(t, same, "mine/linked/x.gguf", filepath.Join(studio, "a", "Linked-GGUF", "x.gguf"))
	var log logged
	c := New(log.logger(), FormatGGUF)
	for name, tt := range map[string]struct {
		roots []string
		want  []string
	}{
		"home first":       {[]string{home, studio}, []string{"a/only", "mine/hard", "mine/linked"}},
		"home last":        {[]string{studio, home}, []string{"a/hard", "a/linked", "a/only", "mine/linked"}},
		"the same links":   {[]string{home, same}, []string{"mine/hard", "mine/linked"}},
		"one in another":   {[]string{studio, filepath.Join(studio, "a")}, []string{"a/hard", "a/linked", "a/only"}},
		"the other way":    {[]string{filepath.Join(studio, "a"), studio}, []string{"local/hard", "local/linked", "local/only"}},
		"twice":            {[]string{studio, studio + "/"}, []string{"a/hard", "a/linked", "a/only"}},
		"only one of them": {[]string{home}, []string{"mine/hard", "mine/linked"}},
	} {
		c.SetRoots(tt.roots)
		var keys []string
		for _, m := range models(t, c) {
			keys = append(keys, m.Key)
		}
		if diff := cmp.Diff(tt.want, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if lines := log.lines(); lines != "" {
		t.Errorf("the log was told of what is no fault: %s", lines)
	}
}
