package migration

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCaddyfile_LeavesOutWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	bad := []string{"{$HOME}", "a{$X:y}", "{env.SECRET}", "{file./etc/passwd}", "\x1b[31mred", "a\x00b", "a\rb", "`\\", "`\\\"{", "b`\\\"x"}
	c := &Config{
		ModelsDirs: []string{"/models", "/{$HOME}"},
		Models: []Model{
			{Key: "a/b", Aliases: append([]string{"good", "{", `C:\x`}, bad...), Options: [][]string{{"ttl", "1m"}, {"args", "--x", "{$HOME}"}}},
			{Key: "{$HOME}/b", Aliases: []string{"other"}},
		},
		Presets: []Preset{{Name: "p", Fields: [][]string{{"stop", "{{", "</s>"}, {"system_prompt", "{env.SECRET}"}}}, {Name: "{$HOME}"}},
	}
	_, text, _ := strings.Cut(c.Caddyfile("x"), "list_models all\n")
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "\t", ""), "\n}\n}\n")
	if diff := cmp.Diff("model a/b {\nalias good `{` `C:\\x`\nttl 1m\n}\npreset p {\nstop `{{` </s>", text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(c.Notes) != len(bad)+5 {
		t.Errorf("%d notes:\n%s", len(c.Notes), strings.Join(c.Notes, "\n"))
	}
}

func TestLlamaSwap_MacrosAreBounded(t *testing.T) {
	t.Parallel()
	text := "macros:\n  m0: aaaaaaaaaaaaaaaa\n"
	for i := range 60 { // each has the one before it twice
		text += "  m" + strconv.Itoa(i+1) + ": \"${m" + strconv.Itoa(i) + "}${m" + strconv.Itoa(i) + "}\"\n"
	}
	text += "models:\n  bomb: {cmd: \"llama-server -m x.gguf ${m60}\", aliases: [\"${m50}\"], ttl: \"${m40}\"}\n"
	text += "  fine: {cmd: \"llama-server -m x.gguf ${m1}\"}\n"
	dir := tree(t, files{"config.yaml": text, "x.gguf": "x"})
	c, err := LlamaSwap(t.Context(), filepath.Join(dir, "config.yaml"), lists(), linked)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "bomb: its command can't be read: its macros make too long a text") {
		t.Errorf("the notes are\n%s", notes)
	}
	if len(c.Models) != 1 || c.Models[0].Key != "llama-swap/fine" {
		t.Errorf("the models are %+v", c.Models)
	}
}
