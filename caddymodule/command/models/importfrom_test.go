package models

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/migration"
)

// TestImportFrom_Words puts words into a Caddyfile that mean something to its parser, and reads them back.
func TestImportFrom_Words(t *testing.T) {
	t.Parallel()
	words := []string{"plain", "a b", `{"a": "b"}`, "}", "{", "#x", `C:\a\b`, "it`s", "a `b` \"c\"", "two\nlines", "<|im_end|>", "<<EOF", "a\u00a0b", "\u2028"}
	c := migration.Config{
		Port: 1234, ModelsDirs: []string{"/srv/a b/{models}"},
		Models:  []migration.Model{{Key: "p/m", Aliases: []string{"qwen3:4b", "a b"}, Options: [][]string{append([]string{"args"}, words...)}}},
		Presets: []migration.Preset{{Name: "qwen3:4b", Fields: [][]string{{"stop", "}", "x"}, {"system_prompt", "Say \"`{x}`\"."}}}},
	}
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(c.Caddyfile("ollama")), nil)
	if err != nil {
		t.Fatal(err)
	}
	lm := gjson.GetBytes(adapted, "apps.lm")
	var got []string
	for _, word := range lm.Get(`models.p/m.args`).Array() {
		got = append(got, word.Str)
	}
	if diff := cmp.Diff(words, got); diff != "" {
		t.Errorf("the arguments (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		"models.p/m.aliases": `["qwen3:4b","a b"]`, "presets.qwen3:4b.stop": `["}","x"]`,
		"presets.qwen3:4b.system_prompt": "\"Say \\\"`{x}`\\\".\"", "models_dirs.0": `"/srv/a b/{models}"`,
	} {
		if got := lm.Get(path).Raw; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func TestImportFrom_ReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("LMCADDY_HOME", filepath.Join(dir, "home"))
	if err := os.WriteFile("Caddyfile", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("config.yaml", []byte("models: {a: {cmd: llama-server -m a.gguf}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := runCommand(t, "import", "--from", "llama-swap", "config.yaml")
	if err == nil || !strings.Contains(err.Error(), "--output") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile("Caddyfile"); err != nil || string(text) != "mine" {
		t.Errorf("%q, error %v", text, err)
	}
	for _, args := range [][]string{{"--from", "nothing"}, {"--from", "llama-swap"}, {"--from", "ollama", "a", "b"}, {}} {
		if _, err := runCommand(t, append([]string{"import"}, args...)...); err == nil {
			t.Errorf("import %q is no error", args)
		}
	}
}

// Nothing is on standard error with --json, which has the notes.
func TestImportFrom_JSON(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("LMCADDY_HOME", filepath.Join(dir, "home"))
	if err := os.WriteFile("config.yaml", []byte("models: {a: {cmd: llama-server -hf me/a}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		args := []string{"import", "--from", "llama-swap", "config.yaml", "--json"}
		if dry {
			args = append(args, "--dry-run")
		}
		out, err := runCommand(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		got := gjson.Parse(out)
		if !gjson.Valid(out) || got.Get("from").Str != "llama-swap" || got.Get("imported").Bool() == dry || !got.Get("notes").IsArray() || !got.Get("links").IsArray() {
			t.Errorf("dry %v: %s", dry, out)
		}
		written, err := os.ReadFile("Caddyfile")
		if dry != (err != nil) || !dry && string(written) != got.Get("caddyfile").Str {
			t.Errorf("dry %v: the Caddyfile is %q, error %v", dry, written, err)
		}
	}
}

// runCommand runs a command line, and returns what it printed.
func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := new(cobra.Command)
	DefineImport(cmd)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args[1:])
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestImportFrom_TheRecipe: the llama-swap configuration on the recipe's page is imported as the Caddyfile that the page shows.
func TestImportFrom_TheRecipe(t *testing.T) {
	page, err := os.ReadFile("../../../docs/recipes/from-llama-swap.md")
	if err != nil {
		t.Fatal(err)
	}
	weights := shippedModel(t)
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("LMCADDY_HOME", filepath.Join(dir, "home"))
	_, config, _ := strings.Cut(string(page), "\n    models:\n")
	config, _, _ = strings.Cut("    models:\n"+config, "\n\n")
	_, shown, _ := strings.Cut(string(page), "```caddyfile\n")
	shown, _, _ = strings.Cut(shown, "```")
	if err := os.MkdirAll("srv/models/qwen/qwen3-4b", 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"srv/models/qwen/qwen3-4b/Qwen3-4B-Q4_K_M.gguf": weights,
		"config.yaml": strings.ReplaceAll(strings.ReplaceAll(config, "\n    ", "\n")[4:], "/srv/", dir+"/srv/"),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := runCommand(t, "import", "--from", "llama-swap", "config.yaml"); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile("Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	model := func(caddyfile string) string {
		adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
		if err != nil {
			t.Fatal(err)
		}
		return gjson.GetBytes(adapted, "apps.lm.models.@values.0").Raw
	}
	if diff := cmp.Diff(model(shown), model(string(made))); diff != "" || model(shown) == "" {
		t.Errorf("the page shows another Caddyfile than the import makes (-page +made):\n%s", diff)
	}
}

// shippedModel returns the file of a small model.
func shippedModel(t *testing.T) string {
	t.Helper()
	weights, err := os.ReadFile("../../../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return string(weights)
}
