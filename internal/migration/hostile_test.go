package migration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// swapped reads a configuration of llama-swap, in a folder that has the file m.gguf.
func swapped(t *testing.T, text string) (*Config, string) {
	t.Helper()
	dir := tree(t, files{"config.yaml": text, "m.gguf": "x", "d.gguf": "x", "p.gguf": "x", "t.jinja": "x"})
	c, err := LlamaSwap(t.Context(), filepath.Join(dir, "config.yaml"), lists(), linked)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// settingsOf returns the lines of the lm block that aren't about all models.
func settingsOf(c *Config, dir string) string {
	_, text, _ := strings.Cut(c.Caddyfile("x"), "idle_ttl 0\n")
	text, _, _ = strings.Cut(text, "\n\t}\n")
	return strings.ReplaceAll(strings.ReplaceAll(text, dir, "DIR"), "\t", "")
}

func TestLlamaSwap_Models(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	const run = "llama-server -m m.gguf"
	for name, tt := range map[string]struct {
		yaml, want string
		notes      []string
	}{
		"two names that become one folder": {
			yaml: `models: {"a b": {cmd: "` + run + `"}, "a:b": {cmd: "` + run + ` -c 512"}, "модель": {cmd: "` + run + `"}, "模型": {cmd: "` + run + `"}}`,
			want: "model llama-swap/a-b {\nalias `a b`\n}\nmodel llama-swap/a-b-2 {\nalias a:b\ncontext_length 512\n}\n" +
				"model llama-swap/model {\nalias модель\n}\nmodel llama-swap/model-2 {\nalias 模型\n}",
		},
		"a name that ends like a format": {
			yaml: `models: {qwen3-gguf: {cmd: "` + run + `"}}`, want: "model llama-swap/qwen3 {\nalias qwen3-gguf\n}",
		},
		"names with the signs of patterns": {
			yaml: `models: {"qwen[fast]*": {cmd: "` + run + `", aliases: ["", "a?", null, "end\\"]}}`,
			want: "model llama-swap/qwen-fast {\nalias `qwen\\[fast]\\*` `a\\?`\n}",
		},
		"an empty name": {yaml: `models: {"": {cmd: "` + run + `"}, "x": {cmd: "` + run + `"}}`, want: "model llama-swap/x {\nalias x\n}"},
		"null and values of other kinds": {
			yaml: "models:\n  gone:\n  list: [1]\n  m: {cmd: \"" + run + "\", ttl: null, env: null, aliases: one, concurrencyLimit: \"${n}\", filters: null, macros: {n: 3}}\nhooks: {on_startup: {preload: m}}",
			want: "model llama-swap/m {\nalias m one\npreload\n}", notes: []string{"gone: it isn't run by llama-server", "list: its settings can't be read"},
		},
		"times that are none": {
			yaml: `models: {m: {cmd: "` + run + `", ttl: .inf}, n: {cmd: "` + run + `", ttl: 1e300}, o: {cmd: "` + run + `", ttl: 0.2}, p: {cmd: "` + run + `", ttl: -1}}`,
			want: "model llama-swap/m {\nalias m\n}\nmodel llama-swap/n {\nalias n\n}\nmodel llama-swap/o {\nalias o\nttl 1s\n}\nmodel llama-swap/p {\nalias p\n}",
		},
		"macros by alias and merge": {
			yaml: "x: &ctx 2048\ny: &all {ctx: 1, cpu: 7}\nmacros: {<<: *all, ctx: *ctx}\nmodels:\n  m: &m\n    cmd: " + run + " -c ${ctx} --threads ${cpu}\n  n:\n    <<: *m\n    ttl: 60\n",
			want: "model llama-swap/m {\nalias m\ncontext_length 2048\nargs --threads 7\n}\nmodel llama-swap/n {\nalias n\ncontext_length 2048\nargs --threads 7\nttl 1m\n}",
		},
		"files that the sandbox has to allow": {
			yaml: `models: {m: {cmd: "` + run + ` --lora a.gguf,/b.gguf --chat-template-file=t.jinja"}}`,
			want: "engine llama_server {\nsandbox_read DIR/a.gguf /b.gguf DIR/t.jinja\n}\nmodel llama-swap/m {\nalias m\nargs --lora DIR/a.gguf,/b.gguf --chat-template-file DIR/t.jinja\n}",
		},
		"a draft model, and one that is missing": {
			yaml: `models: {m: {cmd: "` + run + ` -md d.gguf --draft-max 8"}, n: {cmd: "` + run + ` -md gone.gguf"}}`,
			want: "model llama-swap/m {\nalias m\ndraft_model llama-swap/m-draft\nargs --draft-max 8\n}\nmodel llama-swap/n {\nalias n\n}", notes: []string{"n: its draft model"},
		},
		"a name for each set of parameters": {
			yaml: `models: {m: {cmd: "` + run + `", filters: {setParamsByID: {"${MODEL_ID}:high": {a: 1}}}}}`,
			want: "model llama-swap/m {\nalias m m:high\n}", notes: []string{"m: there is no equivalent of filters.setParamsByID"},
		},
		"preloaded and pinned by an alias": {
			yaml: "models: {m: {cmd: \"" + run + "\", aliases: [other]}}\nhooks: {on_startup: {preload: [other]}}\ngroups: {g: {persistent: true, members: [m, gone]}}",
			want: "model llama-swap/m {\nalias m other\npin\npreload\n}",
		},
		"secrets of the command": {
			yaml: `models: {m: {cmd: "` + run + ` --hf-token hunter2 --api-key=hunter2 --sleep-idle-seconds 9"}, d: {cmd: "docker run -e T=${env.SECRET_TOKEN} x"}}`,
			want: "model llama-swap/m {\nalias m\n}", notes: []string{"instead of --hf-token", "instead of --sleep-idle-seconds", "taken over: docker"},
		},
		"what is said of a model": {
			yaml: `models: {m: {cmd: "` + run + `", unlisted: true, name: N, proxy: "http://x", checkEndpoint: /x, cmdStop: s, surprise: 1}}`,
			want: "model llama-swap/m {\nalias m\n}", notes: []string{"m: there is no equivalent of name, surprise, unlisted"},
		},
		"an unknown macro": {yaml: `models: {m: {cmd: "` + run + ` --threads ${cpus}"}}`, want: "model llama-swap/m {\nalias m\nargs --threads `${cpus}`\n}", notes: []string{"the macro in the argument ${cpus}"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := swapped(t, tt.yaml)
			if diff := cmp.Diff(tt.want, settingsOf(c, dir)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			notes := strings.Join(c.Notes, "\n")
			for _, note := range tt.notes {
				if !strings.Contains(notes, note) {
					t.Errorf("no note says %q:\n%s", note, notes)
				}
			}
			if strings.Contains(notes+c.Caddyfile("x"), "hunter2") {
				t.Errorf("a secret is told: %s", notes)
			}
		})
	}
}

// A variable in a comment needn't be set.
func TestLlamaSwap_Variables(t *testing.T) {
	t.Parallel()
	c, _ := swapped(t, "# ${env.OF_A_COMMENT}\nmodels:\n  m:\n    cmd: |\n      # ${env.OF_A_COMMAND}\n      llama-server -m m.gguf -t ${env.NOT_SET_AT_ALL}\n")
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "NOT_SET_AT_ALL") || strings.Contains(notes, "OF_A") {
		t.Error(notes)
	}
}

func TestLlamaSwap_Bombs(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"aliases":    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nmodels: {m: {cmd: x}}",
		"itself":     "models: &m\n  m: *m\n",
		"duplicates": "models: {m: {cmd: x}, m: {cmd: y}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, files{"config.yaml": text})
			c, err := LlamaSwap(t.Context(), filepath.Join(dir, "config.yaml"), lists(), linked)
			if err == nil && len(c.Models) > 0 {
				t.Errorf("models are found: %v", c.Models)
			}
		})
	}
}

func TestCommandWords_Windows(t *testing.T) {
	t.Parallel()
	got, err := commandWords("C:\\llama\\llama-server.exe ^\n-m \"C:\\my models\\a.gguf\" --kw \"{\\\"a\\\": 1}\"", "windows")
	want := []string{`C:\llama\llama-server.exe`, "^", "-m", `C:\my models\a.gguf`, "--kw", `{"a": 1}`}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestOllama_Damaged(t *testing.T) {
	t.Parallel()
	blob := func(text string) string { return "blobs/" + strings.Replace(digest(text), ":", "-", 1) }
	const odd = `{"num_ctx":"4096","temperature":"hot","top_p":0.5,"stop":["1","null",""],"use_mmap":false,"min_p":null,"seed":true}`
	const other = `{"num_ctx":8192,"stop":"x"}`
	const huge = `{"top_k":1e400}`
	long := strings.Repeat("x", maxFile+1)
	dir := tree(t, files{
		blob("m"): "m", blob(odd): odd, blob(other): other, blob(huge): huge, blob(long): long, blob("[]"): "[]", blob("null"): "null",
		"manifests/registry.ollama.ai/library/m/odd":     manifest("model", digest("m"), "params", digest(odd), "messages", digest("msg"), "draft", digest("d")),
		"manifests/registry.ollama.ai/library/m/other":   manifest("model", digest("m"), "params", digest(other)),
		"manifests/registry.ollama.ai/library/m/huge":    manifest("model", digest("m"), "params", digest(huge)),
		"manifests/registry.ollama.ai/library/m/lost":    manifest("model", digest("m"), "params", digest("nowhere"), "system", digest("nowhere")),
		"manifests/registry.ollama.ai/library/m/long":    manifest("model", digest("m"), "params", digest(long), "system", digest(long)),
		"manifests/registry.ollama.ai/library/m/list":    manifest("model", digest("m"), "params", digest("[]")),
		"manifests/registry.ollama.ai/library/m/null":    manifest("model", digest("m"), "params", digest("null")),
		"manifests/registry.ollama.ai/library/m/nothing": "null",
		"manifests/registry.ollama.ai/library/m/large":   long,
	})
	if err := os.Symlink("odd", filepath.Join(dir, "manifests/registry.ollama.ai/library/m/link")); err != nil {
		t.Fatal(err)
	}
	older := strings.Replace(blob("m"), "sha256-", "sha256:", 1) // as older stores have it
	c, err := Ollama(t.Context(), dir, noVariables, lists(Found{Key: "library/m", Path: older}))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, dir, "\t\tmodels_dir DIR\n\t\tlist_models all\n\t\tidle_ttl 5m\n"+
		"\t\tmodel library/m {\n\t\t\talias m:huge m:list m:long m:lost m:null m:odd m:other\n\t\t\tcontext_length 4096\n\t\t\tpreset m:odd\n\t\t\targs --top-p 0.5 --no-mmap\n\t\t}\n"+
		"\t\tpreset m:odd {\n\t\t\tstop `\"1\"` `\"null\"`\n\t\t}\n\t\tpreset m:other {\n\t\t\tstop x\n\t\t}\n",
		"http://:11434 {\n\tbind\n\tlm_api\n}\n",
		[]string{
			"m:large: ", "m:nothing: it has no file", "m:list: its parameters can't be read", "m:long: its system prompt can't be read",
			"m:lost: its parameters can't be read", "m:lost: its system prompt can't be read", "m:odd: there is no equivalent of seed, temperature",
			"m:odd: there is no equivalent of draft (import it as a model", "messages (clients send examples)", "m:huge: its parameters can't be read",
			"library/m: it has two names with different settings, of which the first counts, and not: context_length 8192",
		})
}

func TestOllama_Environment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		want string // the options
		port int
		note string
	}{
		"nothing":     {want: "idle_ttl 5m", port: 11434},
		"all of it":   {env: map[string]string{"OLLAMA_KEEP_ALIVE": "1h", "OLLAMA_MAX_LOADED_MODELS": "2", "OLLAMA_MAX_QUEUE": "9", "OLLAMA_HOST": "0.0.0.0:8000"}, want: "idle_ttl 60m max_loaded 2 queue 9", port: 8000, note: "Ollama served on 0.0.0.0"},
		"for ever":    {env: map[string]string{"OLLAMA_KEEP_ALIVE": "-1", "OLLAMA_HOST": "http://127.0.0.1:80/"}, want: "idle_ttl 0", port: 80},
		"not at all":  {env: map[string]string{"OLLAMA_KEEP_ALIVE": "0"}, want: "idle_ttl 1s", port: 11434},
		"in seconds":  {env: map[string]string{"OLLAMA_KEEP_ALIVE": "90", "OLLAMA_HOST": ":99999"}, want: "idle_ttl 90s", port: 11434},
		"too long":    {env: map[string]string{"OLLAMA_KEEP_ALIVE": "99999999999999"}, want: "idle_ttl 52560000m", port: 11434},
		"no duration": {env: map[string]string{"OLLAMA_KEEP_ALIVE": "long", "OLLAMA_MAX_QUEUE": "x"}, want: "idle_ttl 5m", port: 11434},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Config{Port: ollamaPort}
			c.ollamaEnvironment(func(name string) string { return tt.env[name] })
			var words []string
			for _, o := range c.Options {
				words = append(words, o...)
			}
			if got := strings.Join(words, " "); got != tt.want || c.Port != tt.port || !strings.Contains(strings.Join(c.Notes, "\n"), tt.note) {
				t.Errorf("%s, port %d, %q", got, c.Port, c.Notes)
			}
		})
	}
}

func TestLMStudio_Damaged(t *testing.T) {
	t.Parallel()
	const defaults = ".internal/user-concrete-model-default-config/"
	dir := tree(t, files{
		"settings.json": "{broken", ".internal/http-server-config.json": `{"port":"1"}`, "models/p/m/a.gguf": "x", "models/p/n/b.gguf": "x",
		defaults + "p/m/a.gguf.json": "\ufeff" + `{"load":{"fields":[{"key":"llm.load.contextLength","value":{"checked":true,"value":"long"}},
			{"key":"llm.load.llama.kCacheQuantizationType","value":false},{"key":"llm.load.llama.vCacheQuantizationType","value":{"checked":true,"value":"x --y"}},
			{"key":"llm.load.llama.cpuThreadPoolSize","value":{"a":1}},{"key":"llm.load.numParallelSessions","value":0}]},
			"operation":{"fields":[{"key":"llm.prediction.stopStrings","value":["7","END"]},{"key":"llm.prediction.systemPrompt","value":""},{"key":"llm.prediction.tools","value":[]}]}}`,
		defaults + "p/n/b.gguf.json": "[1,",
		"hub/models/qwen/qwen3-4b/model.yaml": "model: qwen/qwen3-4b\nbase:\n  - key: p/m\n    sources: [{type: huggingface, user: p, repo: m-GGUF}]\n" +
			"config: {operation: {fields: [{key: llm.prediction.temperature, value: 0.6}, {key: llm.prediction.topKSampling, value: 20}]}}\n",
		"hub/models/a/b/model.yaml": "model: [", "hub/models/a/c/model.yaml": "model: a/c\nbase: a/b\n",
	})
	c, err := LMStudio(t.Context(), dir, lists(Found{Key: "p/m", Path: "p/m/a.gguf"}, Found{Key: "p/n", Path: "p/n/b.gguf"}))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, dir, "\t\tmodels_dir DIR/models\n\t\tlist_models all\n"+
		"\t\tmodel p/m {\n\t\t\talias qwen/qwen3-4b\n\t\t\tpreset p/m\n\t\t\targs --temp 0.6 --top-k 20\n\t\t}\n"+
		"\t\tpreset p/m {\n\t\t\tstop `\"7\"` END\n\t\t}\n",
		"http://:1234 {\n\tbind\n\tlm_api\n}\n",
		[]string{
			"settings.json can't be read", "http-server-config.json can't be read", "b.gguf.json can't be read", "a/b/model.yaml can't be read",
			"p/m: there is no equivalent of llm.load.contextLength, llm.load.llama.vCacheQuantizationType, llm.load.numParallelSessions",
		})
}

func TestLMStudioFolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		with files
		want string
	}{
		"nothing":          {want: "DIR/.lmstudio"},
		"a pointer":        {with: files{".lmstudio-home-pointer": "DIR/other\n"}, want: "DIR/other"},
		"an empty pointer": {with: files{".lmstudio-home-pointer": "\n"}, want: "DIR/.lmstudio"},
		"an older one":     {with: files{".cache/lm-studio/x": ""}, want: "DIR/.cache/lm-studio"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, tt.with)
			if got := strings.ReplaceAll(LMStudioFolder(dir), dir, "DIR"); got != filepath.FromSlash(tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// An empty folder isn't the end of the search.
func TestNoModels(t *testing.T) {
	t.Parallel()
	_, ollama := Ollama(t.Context(), t.TempDir(), noVariables, lists())
	_, studio := LMStudio(t.Context(), t.TempDir(), lists())
	for _, err := range []error{ollama, studio} {
		if _, ok := errors.AsType[*NoModelsError](err); !ok {
			t.Errorf("error %v", err)
		}
	}
}
