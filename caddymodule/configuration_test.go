package caddymodule

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// A field is all that an option needs: what is set of it in a Caddyfile gets through JSON, and is shown; where it isn't set, its default is
// shown and is in force.
func TestOptions_AreTheirFields(t *testing.T) {
	t.Parallel()
	unset := describeText(t, "{\nlm\n}\n").Settings
	for _, f := range option.Fields(reflect.TypeFor[config.Settings]()) {
		if f.IsBlock() && f.MayBeRepeated() {
			continue
		}
		blocks := map[string][]option.Field{f.Word + " %s\n": {f}}
		if f.IsBlock() && f.Type.Kind() == reflect.Struct {
			head := map[string]string{"store": "sqlite"}[f.Word]
			blocks[f.Word+" "+head+" {\n%s\n}\n"] = option.Fields(f.Type)
		}
		for block, fields := range blocks {
			for _, o := range fields {
				name := strings.TrimSpace(strings.TrimSuffix(f.Word, o.Word) + " " + o.Word)
				if o.Word == "" || name == "cluster" {
					continue
				}
				if got := settingOf(unset, name); got.Value == "" || got.Source == "file" {
					t.Errorf("%s: if it isn't set, %+v is shown", name, got)
				}
				if o.Example() == "" {
					t.Errorf("%s has no example", name)
					continue
				}
				line := o.Word + " " + o.Example()
				if o.Word == f.Word {
					line = o.Example()
				}
				set := describeText(t, "{\nlm {\n"+fmt.Sprintf(block, line)+"}\n}\n").Settings
				if got := settingOf(set, name); got.Value == "" || got.Source != "file" {
					t.Errorf("%s: with its example, %+v is shown", name, got)
				}
			}
		}
	}
}

func TestModelOptions_AreDescribed(t *testing.T) {
	t.Parallel()
	described := describeText(t, `{
		lm {
			model a/b {
				alias x
				args -v
				context_length 10
				devices CUDA0
				draft_model c/d
				gpu_layers 20
				lora x-lora
				parallel 2
				pin
				preload
				preset short
				ttl 90s
				warm off
			}
			preset short {
				max_tokens 9
			}
		}
	}`)
	var names, want []string
	for _, s := range described.Models[0].Settings {
		names = append(names, s.Name)
	}
	for _, f := range option.Fields(reflect.TypeFor[config.Model]()) {
		want = append(want, f.Word)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func describeText(t *testing.T, caddyfile string) Described {
	t.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Describe(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func settingOf(settings []resource.Setting, name string) resource.Setting {
	i := slices.IndexFunc(settings, func(s resource.Setting) bool { return s.Name == name })
	if i < 0 {
		return resource.Setting{}
	}
	return settings[i]
}

func TestDescribe(t *testing.T) {
	t.Setenv("LMCADDY_HOME", "/srv/lm")
	t.Setenv("A_TOKEN", "hf_verysecret")
	d := describeText(t, `{
		lm {
			idle_ttl 90m
			jit off
			queue 0
			models_dir /srv/models
			models_dir "/srv/more models"
			hub https://hub.example {
				token {env.A_TOKEN}
			}
			store postgres postgres://lm:verysecret@db/lm
			engine llama_server {
				path /opt/llama-server
				args --api-key verysecret --verbose
			}
		}
	}
	127.0.0.1:7001 {
		bind 127.0.0.1
		tls internal
		lm_api
	}
	http://lm.lan:7002 {
		lm_auth
		lm_api {
			dialects openai native
			cors https://app.example
			max_body 1MiB
		}
	}`)
	for name, want := range map[string]resource.Setting{
		"idle_ttl":        {Name: "idle_ttl", Value: "1h30m", Source: "file"},
		"jit":             {Name: "jit", Value: "off", Source: "file"},
		"queue":           {Name: "queue", Value: "0", Source: "file"},
		"models_dir":      {Name: "models_dir", Value: `/srv/models "/srv/more models"`, Source: "file"},
		"hub":             {Name: "hub", Value: "https://hub.example (with a token)", Source: "file"},
		"home":            {Name: "home", Value: "/srv/lm", Source: "environment"},
		"max_loaded":      {Name: "max_loaded", Value: "0 (limited only by memory)", Source: "default"},
		"stall_timeout":   {Name: "stall_timeout", Value: "5m", Source: "default"},
		"reasoning_field": {Name: "reasoning_field", Value: "reasoning", Source: "default"},
		"store":           {Name: "store", Value: "postgres postgres://lm:xxxxx@db/lm", Source: "file"},
	} {
		if diff := cmp.Diff(want, settingOf(d.Settings, name)); diff != "" {
			t.Error(diff)
		}
	}
	sites := []resource.Site{
		{Server: "srv0", Addresses: []string{"https://127.0.0.1:7001"}, Hosts: []string{"127.0.0.1"}, TLS: true, Dialects: []string{}, CORS: []string{}, MaxBodyBytes: 64 << 20, Page: true},
		{Server: "srv1", Addresses: []string{"http://:7002"}, Hosts: []string{"lm.lan"}, Authentication: true, Reachable: true, Dialects: []string{"openai", "native"}, CORS: []string{"https://app.example"}, MaxBodyBytes: 1 << 20, Page: true},
	}
	if diff := cmp.Diff(sites, d.Sites); diff != "" {
		t.Error(diff)
	}
	if got := settingOf(d.Engines[0].Settings, "path"); got.Value != "/opt/llama-server" || got.Source != "file" {
		t.Errorf("path: %v", got)
	}
	text, err := json.Marshal(d.Configuration)
	if err != nil || strings.Contains(string(text), "verysecret") {
		t.Errorf("%v: there are secrets in %s", err, text)
	}
	if d.PostgresURL != "postgres://lm:verysecret@db/lm" {
		t.Errorf("the database is %q", d.PostgresURL)
	}
}

func TestDescribe_Errors(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{`:                    "isn't valid",
		`{"apps":{"http":{}}}`: "serves no models",
		`{"apps":{"lm":{"prompt_cache":"sometimes"}}}`: `"sometimes" is not one of`,
		`{"apps":{"nonsense":{}}}`:                     "nonsense",
	} {
		if _, err := Describe([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
