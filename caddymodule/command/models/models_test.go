package models

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
)

// planned is what a server would download.
const planned = `{"status":"estimated","model":"acme/tiny","repository":"acme/Tiny-GGUF","url":"https://hub.example/acme/Tiny-GGUF","quantization":"Q4_K_M",
	"files":[{"path":"acme/Tiny-GGUF/tiny.gguf","size_bytes":5000000000}],"total_size_bytes":5000000000,"left_bytes":4000000000,`

func TestGet_Plan(t *testing.T) {
	t.Parallel()
	const (
		start  = "POST /api/v1/models/download"
		search = "GET /api/v1/models/search"
	)
	for name, tt := range map[string]struct {
		answers   map[string]string
		arguments []string
		notes     string // on standard error
		err       string
	}{
		"a full disk": {
			map[string]string{start: planned + `"disk_free_bytes":1000000000,"other_downloads_bytes":2000000000,"fits_disk":false}`},
			[]string{"acme/Tiny-GGUF"},
			"",
			"acme/Tiny-GGUF, Q4_K_M doesn't fit the disk: it needs 4.0 GB, and other downloads 2.0 GB, and 1.0 GB are free",
		},
		"room enough": {
			map[string]string{start: planned + `"disk_free_bytes":100000000000,"other_downloads_bytes":0,"fits_disk":true}`},
			[]string{"acme/Tiny-GGUF", "-q", "q4_k_m", "--no-wait"},
			"acme/Tiny-GGUF@q4_k_m: 5.0 GB in 1 file from https://hub.example/acme/Tiny-GGUF; 100 GB of the disk are free.\n", "",
		},
		"an unknown disk": {
			map[string]string{start: planned + `"disk_free_bytes":null,"other_downloads_bytes":0,"fits_disk":true}`},
			[]string{"acme/Tiny-GGUF", "--no-wait"},
			"acme/Tiny-GGUF, Q4_K_M: 5.0 GB in 1 file from https://hub.example/acme/Tiny-GGUF.\n", "",
		},
		"two quantizations": {nil, []string{"acme/Tiny-GGUF@q8_0", "-q", "q4_k_m"}, "", "leave out --quantization"},
		"no such URL":       {map[string]string{search: `{"models":[{"model":"a/b"}]}`}, []string{"https://hub.example/a/c"}, "", "Not /api/v1/models/download"},
		"another name": {
			map[string]string{search: `{"models":[{"model":"a/b"},{"model":"c/d"}]}`},
			[]string{"b"},
			"", `there is no model "b" to download. Found are: a/b, c/d. Type one of these names, such as "lmcaddy get a/b"`,
		},
		"nothing like it": {map[string]string{search: `{"models":[]}`}, []string{"b/c"}, "", `there is no model "b/c" to download, and none like it is found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, notes, err := kittest.TalkTo(t, DefineGet, tt.answers, tt.arguments...)
			kittest.WantTalk(t, tt.notes, tt.err, notes, err)
		})
	}
}

func TestLoad_Request(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"never": 0, "0": 0, "90": 90, "30m": 1800, "2h": 7200, "1d": 86400, "1.5s": 1} {
		if got, err := TTLSeconds(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-5m", "-1", "10ms", "m"} {
		if got, err := TTLSeconds(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func TestLoad_EstimateInWords(t *testing.T) {
	t.Parallel()
	const (
		load = "POST /api/v1/models/load"
		head = `{"model":"a/b","status":"estimated","load_config":{"context_length":8192},"parallel":4,"memory":{"total_bytes":2000000000,"weights_bytes":1500000000,
			"kv_cache_bytes":500000000,"confidence":"low"},"memory_budget_bytes":8000000000,"free_bytes":1000000000,`
		says = `a/b
  Context        8192 tokens for each request
  Parallel       4 requests at a time
  Memory needed  2.0 GB (weights 1.5 GB, context 500 MB)
  Memory free    1.0 GB of 8.0 GB for all models
  Confidence     low: its file lacks figures
  Estimate       `
	)
	for tail, want := range map[string]string{
		`"fits":true}`: "it can be loaded at once\n",
		`"fits":true,"would_unload":["c/d","e/f:2"],"would_wait":true}`:                        "it can be loaded; c/d, e/f:2 would be unloaded for it; it would wait until requests have ended\n",
		`"fits":true,"would_unload":[],"would_unload_others":2}`:                               "it can be loaded; 2 models of others would be unloaded for it\n",
		`"fits":true,"would_unload":["c/d"],"would_unload_others":1}`:                          "it can be loaded; c/d, and 1 model of others would be unloaded for it\n",
		`"fits":true,"smaller":{"parallel":2,"total_bytes":900000000},"would_shrink":["c/d"]}`: "it can be loaded for 2 requests at a time, in 900 MB; c/d would be made smaller for it\n",
		`"fits":true,"smaller":{"parallel":4,"total_bytes":900000000}}`:                        "it can be loaded with a smaller prompt cache, in 900 MB\n",
	} {
		out, _, err := kittest.TalkTo(t, DefineLoad, map[string]string{load: head + tail}, "a/b", "--estimate-only")
		kittest.WantTalk(t, says+want, "", out, err)
	}
	_, _, err := kittest.TalkTo(t, DefineLoad, map[string]string{load: head + `"fits":false,"reason":"It needs more."}`}, "a/b", "--estimate-only")
	kittest.WantTalk(t, "", "It needs more", "", err)
}

func TestUnload_WithoutAName(t *testing.T) {
	t.Parallel()
	const list, unload = "GET /api/v1/models", "POST /api/v1/models/unload"
	one := `{"models":[{"key":"a/b","loaded_instances":[{"id":"a/b"}]}]}`
	for name, tt := range map[string]struct{ models, out, err string }{
		"one":  {one, "a/b is unloaded.\n", ""},
		"none": {`{"models":[{"key":"a/b","loaded_instances":[]}]}`, "No model is loaded.\n", ""},
		"two":  {`{"models":[{"key":"a/b","loaded_instances":[{"id":"a/b"},{"id":"a/b:2"}]}]}`, "", "several models are loaded: name one of a/b, a/b:2, or give --all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := kittest.TalkTo(t, DefineUnload, map[string]string{list: tt.models, unload: `{"instance_id":"a/b"}`})
			kittest.WantTalk(t, tt.out, tt.err, out, err)
		})
	}
}

func TestShow_IsSafeToPrint(t *testing.T) {
	t.Parallel()
	const model = `{"key":"a/b","display_name":"Evil\u001b[2J\nname","type":"llm","size_bytes":5,"params_string":null,"quantization":null,"files":[],
		"settings":{},"load":null,"load_error":"It is broken.","chat_template":"x"}`
	out, _, err := kittest.TalkTo(t, DefineShow, map[string]string{"GET /api/v1/models/a/b": model}, "a/b")
	want := `a/b
  Name           Evil` + "\ufffd[2J\ufffd" + `name
  Type           language model
  Size           5 B (0 files)
  Context        up to 0 tokens
  Can            chat
  Chat template  1 characters ("lmcaddy show a/b --template" prints it)

Settings
  Context        as memory allows
  Parallel       as memory allows
  Unloaded       never, once it is loaded

A load now
                 It is broken.
`
	kittest.WantTalk(t, want, "", out, err)
	out, _, err = kittest.TalkTo(t, DefineShow, map[string]string{"GET /api/v1/models/a/b": `{"key":"a/b","chat_template":null}`}, "a/b", "--template")
	kittest.WantTalk(t, "", "a/b has no chat template", out, err)
}
