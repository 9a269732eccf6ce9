package migration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
)

type files map[string]string

// tree makes a folder with files. DIR in a file is the folder's path.
func tree(t *testing.T, with files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range with {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lists returns a List that finds these models.
func lists(found ...Found) List {
	return func(_ context.Context, folder string) ([]Found, error) {
		all := make([]Found, len(found))
		for i, f := range found {
			f.Path = filepath.Join(folder, filepath.FromSlash(f.Path))
			all[i] = f
		}
		return all, nil
	}
}

// linked is a Link that only looks whether there is the file.
func linked(file, publisher, repo string) (string, error) {
	_, err := os.Stat(file)
	return catalog.Key(publisher, repo), err
}

// compare compares a configuration with the lines within its lm block, and the notes with parts of them.
func compare(t *testing.T, c *Config, dir, lm, site string, notes []string) {
	t.Helper()
	text := strings.ReplaceAll(c.Caddyfile("x"), dir, "DIR")
	_, text, _ = strings.Cut(text, "\n")
	want := "{\n\tgrace_period 15s\n\tlm {\n" + lm + "\t}\n}\n\n" + site
	text = strings.ReplaceAll(text, "\tbind 127.0.0.1 # Only this machine can connect. Before other machines may, put lm_auth before lm_api.\n", "\tbind\n")
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("the Caddyfile (-want +got):\n%s", diff)
	}
	all := strings.Join(c.Notes, "\n")
	for _, note := range notes {
		if !strings.Contains(all, note) {
			t.Errorf("no note says %q:\n%s", note, all)
		}
	}
}

// digest is the digest of a blob, as manifests have it.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func manifest(layers ...string) string {
	var all []string
	for i := 0; i < len(layers); i += 2 {
		all = append(all, `{"mediaType":"application/vnd.ollama.image.`+layers[i]+`","digest":"`+layers[i+1]+`","size":1}`)
	}
	return `{"schemaVersion":2,"config":{"digest":"` + digest("config") + `"},"layers":[` + strings.Join(all, ",") + `]}`
}

func noVariables(string) string { return "" }

func TestOllama(t *testing.T) {
	t.Parallel()
	const params = `{"num_ctx":8192,"temperature":0.6,"top_k":20,"stop":["<|im_end|>","}"],"mirostat":1,"num_gpu":"99; rm"}`
	const system = "You are \"terse\" {and} `odd`.\n"
	blob := func(text string) string { return "blobs/" + strings.Replace(digest(text), ":", "-", 1) }
	qwen, gemma := digest("qwen"), digest("gemma")
	dir := tree(t, files{
		blob("qwen"): "qwen", blob("gemma"): "gemma", blob(params): params, blob(system): system,
		"manifests/registry.ollama.ai/library/qwen3/4b":        manifest("model", qwen, "template", digest("t"), "params", digest(params)),
		"manifests/registry.ollama.ai/library/qwen3/latest":    manifest("model", qwen, "params", digest(params)),
		"manifests/registry.ollama.ai/library/gemma3/4b":       manifest("model", gemma, "projector", digest("p")),
		"manifests/registry.ollama.ai/ann/tuned/latest":        manifest("model", qwen, "system", digest(system)),
		"manifests/hf.co/bartowski/X-GGUF/Q4_K_M":              manifest("model", gemma),
		"manifests/registry.ollama.ai/library/gone/1b":         manifest("model", digest("gone")),
		"manifests/registry.ollama.ai/library/cloud/latest":    manifest("license", digest("l")),
		"manifests/registry.ollama.ai/library/evil/latest":     manifest("model", "sha256:../../etc/passwd"),
		"manifests/registry.ollama.ai/library/tensors/latest":  manifest("tensor", digest("x")),
		"manifests/registry.ollama.ai/library/adapted/latest":  manifest("model", digest("adapted"), "adapter", digest("a")),
		"manifests/registry.ollama.ai/library/qwen3/.DS_Store": "x",
		"manifests/registry.ollama.ai/library/garbage/latest":  "no JSON",
	})
	path := func(text string) string { return blob(text) }
	c, err := Ollama(t.Context(), dir, noVariables, lists(
		Found{Key: "library/qwen3", Path: path("qwen")}, Found{Key: "library/gemma3", Path: path("gemma")}, Found{Key: "ann/tuned", Path: path("qwen")},
		Found{Key: "bartowski/x", Path: path("gemma")}, Found{Key: "library/adapted", Path: path("adapted"), Err: errors.New("it has an adapter")},
	))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, dir, "\t\tmodels_dir DIR\n\t\tlist_models all\n\t\tidle_ttl 5m\n"+
		"\t\tmodel ann/tuned {\n\t\t\tpreset ann/tuned:latest\n\t\t}\n"+
		"\t\tmodel bartowski/x {\n\t\t\talias hf.co/bartowski/X-GGUF:Q4_K_M\n\t\t}\n"+
		"\t\tmodel library/gemma3 {\n\t\t\talias gemma3:4b\n\t\t}\n"+
		"\t\tmodel library/qwen3 {\n\t\t\talias qwen3:4b qwen3\n\t\t\tcontext_length 8192\n\t\t\tpreset qwen3:4b\n\t\t\targs --temp 0.6 --top-k 20\n\t\t}\n"+
		"\t\tpreset ann/tuned:latest {\n\t\t\tsystem_prompt \"You are \\\"terse\\\" {and} `odd`.\"\n\t\t}\n"+
		"\t\tpreset qwen3:4b {\n\t\t\tstop <|im_end|> `}`\n\t\t}\n"+
		"\t\tpreset qwen3:latest {\n\t\t\tstop <|im_end|> `}`\n\t\t}\n",
		"http://:11434 {\n\tbind\n\tlm_api\n}\n",
		[]string{
			"gone:1b: its file is missing", "tensors:latest: it has no file", "adapted:latest: it has an adapter", "qwen3:4b: there is no equivalent of mirostat, num_gpu",
			"OLLAMA_KEEP_ALIVE idle_ttl", "evil:latest: it has no file", "cloud:latest: it has no file",
			"garbage:latest: its manifest can't be read",
		})
	if _, err := Ollama(t.Context(), t.TempDir(), noVariables, lists()); err == nil {
		t.Error("an empty folder was taken for a store")
	}
}

func TestLMStudio(t *testing.T) {
	t.Parallel()
	const defaults = ".internal/user-concrete-model-default-config/"
	dir := tree(t, files{
		"settings.json":                     `{"downloadsFolder":"DIR/elsewhere","developer":{"jitModelTTL":{"enabled":true,"ttlSeconds":600}}}`,
		".internal/http-server-config.json": `{"port":4321,"networkInterface":"0.0.0.0","cors":true,"justInTimeModelLoading":true}`,
		"mcp.json":                          `{"mcpServers":{}}`,
		"config-presets/a.preset.json":      `{}`,
		defaults + "lmstudio-community/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf.json": `{"preset":"","operation":{"fields":[
			{"key":"llm.prediction.temperature","value":0.7},{"key":"llm.prediction.minPSampling","value":{"checked":false,"value":0.05}},
			{"key":"llm.prediction.systemPrompt","value":"Be brief."},{"key":"llm.prediction.unknown","value":1}]},
			"load":{"fields":[{"key":"llm.load.contextLength","value":16384},{"key":"llm.load.numParallelSessions","value":2},
			{"key":"llm.load.llama.kCacheQuantizationType","value":{"checked":true,"value":"q8_0"}},{"key":"llm.load.llama.acceleration.offloadRatio","value":"max"}]}}`,
	})
	c, err := LMStudio(t.Context(), dir, lists(
		Found{Key: "lmstudio-community/qwen3-4b", Path: "lmstudio-community/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf"},
		Found{Key: "pub/plain", Path: "pub/plain/a.gguf"}, Found{Key: "pub/broken", Path: "pub/broken/a.gguf", Err: errors.New("it is cut off")},
	))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, dir, "\t\tmodels_dir DIR/elsewhere\n\t\tlist_models all\n\t\tidle_ttl 10m\n"+
		"\t\tmodel lmstudio-community/qwen3-4b {\n\t\t\tcontext_length 16384\n\t\t\tparallel 2\n\t\t\targs --cache-type-k q8_0 --temp 0.7\n\t\t\tpreset lmstudio-community/qwen3-4b\n\t\t}\n"+
		"\t\tpreset lmstudio-community/qwen3-4b {\n\t\t\tsystem_prompt `Be brief.`\n\t\t}\n",
		"http://:4321 {\n\tbind\n\tlm_api\n}\n",
		[]string{"served on 0.0.0.0", "CORS", "mcp.json", "presets", "pub/broken: it is cut off", "there is no equivalent of llm.prediction.unknown"})

	plain := tree(t, files{"pub/m/a.gguf": "x"})
	c, err = LMStudio(t.Context(), plain, lists(Found{Key: "pub/m", Path: "pub/m/a.gguf"}))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, plain, "\t\tmodels_dir DIR\n\t\tlist_models all\n", "http://:1234 {\n\tbind\n\tlm_api\n}\n", nil)
}

const swapYAML = `
globalTTL: 300
apiKeys: ["sk-hunter2"]
macros:
  ctx: 4096
  models: DIR/models
  server: >
    /opt/llama-server-b1 --port ${PORT} --host 127.0.0.1
  base: "${server} -ngl 99 -c ${ctx}"
models:
  "qwen/think":
    macros: {ctx: 16384}
    cmd: |
      # a comment with ${models}
      ${base}
      -m ${models}/qwen.gguf -np 2 --mmproj ${models}/mmproj-qwen.gguf \
      --chat-template-kwargs '{"enable_thinking": true}' --alias x --metrics
    aliases: ["gpt-4o", "${MODEL_ID}:high"]
    ttl: 60
    env: ["CUDA_VISIBLE_DEVICES=0"]
  fast one:
    cmd: ${base} --model=${models}/qwen.gguf --kv-unified --parallel 4 --lora "DIR/a b.gguf"
    ttl: "${ctx}"
    aliases: [gpt-4o]
    filters: {stripParams: temperature}
  never:
    cmd: C:\llama\llama-server.exe -m DIR/models/qwen.gguf
    ttl: 0
  hub: {cmd: "llama-server -hf ggml-org/gemma-3-1b-it-GGUF:Q4_K_M --api-key s"}
  docker: {cmd: "docker run --rm llama-server -m x"}
  gone: {cmd: "llama-server -m /nowhere/x.gguf"}
  open: {cmd: "llama-server -m 'x"}
hooks: {on_startup: {preload: ["fast one"]}}
routing: {router: {settings: {groups: {keep: {persistent: true, members: ["fast one"]}}}}}
peers: {other: {proxy: "http://other"}}
`

func TestLlamaSwap(t *testing.T) {
	t.Setenv("LLAMA_CACHE", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	var links []string
	link := func(file, publisher, repo string) (string, error) {
		key, err := linked(file, publisher, repo)
		if err == nil {
			links = append(links, file+" "+publisher+"/"+repo)
		}
		return key, err
	}
	dir := tree(t, files{"config.yaml": swapYAML, "models/qwen.gguf": "x", "models/mmproj-qwen.gguf": "x"})
	c, err := LlamaSwap(t.Context(), filepath.Join(dir, "config.yaml"), lists(Found{Key: "ggml-org/gemma-3-1b-it", Path: "x.gguf"}), link)
	if err != nil {
		t.Fatal(err)
	}
	c.ModelsDirs = nil // a folder of this test alone
	compare(t, c, dir, "\t\tlist_models all\n\t\tidle_ttl 5m\n\t\tengine llama_server {\n\t\t\tsandbox_read `DIR/a b.gguf`\n\t\t}\n"+
		"\t\tmodel ggml-org/gemma-3-1b-it {\n\t\t\talias hub\n\t\t}\n"+
		"\t\tmodel llama-swap/fast-one {\n\t\t\talias `fast one` gpt-4o\n\t\t\tcontext_length 4096\n\t\t\tparallel 4\n\t\t\targs -ngl 99 --lora `DIR/a b.gguf`\n\t\t\tttl 4096s\n\t\t\tpin\n\t\t\tpreload\n\t\t}\n"+
		"\t\tmodel llama-swap/never {\n\t\t\talias never\n\t\t\tttl 0\n\t\t}\n"+
		"\t\tmodel qwen/think {\n\t\t\talias qwen/think:high\n\t\t\tcontext_length 8192\n\t\t\tparallel 2\n\t\t\targs -ngl 99 --chat-template-kwargs `{\"enable_thinking\": true}`\n\t\t\tttl 1m\n\t\t}\n",
		"http://:8080 {\n\tbind\n\tlm_auth\n\tlm_api\n}\n",
		[]string{
			"docker: it isn't run by llama-server with a model", "gone: its file can't be used: stat /nowhere/x.gguf", "open: its command can't be read", "qwen/think: there is no equivalent of env",
			"fast one: there is no equivalent of filters.stripParams", "gpt-4o is a name of two models", "there is no equivalent of peers", "lmcaddy token create", "hub: instead of --api-key",
		})
	want := []string{
		dir + "/models/qwen.gguf llama-swap/fast-one", dir + "/models/qwen.gguf llama-swap/never", dir + "/models/qwen.gguf qwen/think",
		dir + "/models/mmproj-qwen.gguf qwen/think",
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("the links (-want +got):\n%s", diff)
	}
}

func TestLlamaSwap_Refuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"no YAML": "models: [", "no models": "logLevel: info", "a list": "- a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, files{"config.yaml": text})
			if _, err := LlamaSwap(t.Context(), filepath.Join(dir, "config.yaml"), lists(), linked); err == nil {
				t.Error("it was read")
			}
		})
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"a  b\tc\n":      {"a", "b", "c"},
		`'a b' "c d"e`:   {"a b", "c de"},
		`a\ b "\"x\n"`:   {"a b", `"x\n`},
		`'' x`:           {"", "x"},
		`'{"a": "b c"}'`: {`{"a": "b c"}`},
		"":               nil,
	} {
		got, err := split(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: error %v, (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`} {
		if _, err := split(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"plain": "plain", "": "``", "a b": "`a b`", `{"a":1}`: "`{\"a\":1}`", "a`b": "\"a`b\"", "}": "`}`", "#x": "`#x`", `C:\a`: "`C:\\a`", "a\nb": "`a\nb`",
		"a\u00a0b": "`a\u00a0b`", "\u2028": "`\u2028`", "<<EOF": "`<<EOF`", "a<<b": "a<<b",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
