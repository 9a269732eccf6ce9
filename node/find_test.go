package node

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// TestFind_NamesInTheirOrder: what a name means, when several things might have it.
func TestFind_NamesInTheirOrder(t *testing.T) {
	t.Parallel()
	const decomposed = "cafe\u0301"
	dir := withModel(t)
	file, err := filepath.Abs(shipped + "/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for repo, files := range map[string][]string{
		"acme/" + decomposed: {"a.gguf"}, "acme/Two-GGUF": {"two-Q4_0.gguf", "two-Q8_0.gguf"}, "acme/same": {"b.gguf"}, "other/same": {"c.gguf"}, "acme/chat-4b": {"d.gguf"},
	} {
		for _, name := range files {
			folder := filepath.Join(dir.Models(), repo)
			if err := errors.Join(os.MkdirAll(folder, 0o700), os.Symlink(file, filepath.Join(folder, name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := open(t, dir)
	var log lines
	push(t, n, 1, Settings{Log: slog.New(slog.NewTextHandler(&log, nil)), Models: map[string]ModelSettings{
		"lmcaddy/tinychat": {Aliases: []string{"GPT-4o", "acme/chat-4b", "Ünïcode", "four:latest", "same-too"}},
		"acme/chat-4b":     {Aliases: []string{"*", "*/*", "claude-*"}},
		"acme/nobody":      {Aliases: []string{"gone"}},
	}})
	if _, err := n.Names.Find(t.Context(), "tinychat"); err != nil {
		t.Fatal(err)
	}
	if err := n.Names.SaveCustom(t.Context(), CustomModel{Name: "tinychat-brief", Model: "lmcaddy/tinychat"}, nil); err == nil {
		t.Error("a name that fits a pattern can be taken")
	}
	const tinychat, chat = "lmcaddy/tinychat", "acme/chat-4b"
	for name, want := range map[string]string{
		"lmcaddy/tinychat": tinychat, " LMCADDY/TinyChat ": tinychat, "lmcaddy/tinychat@F16": tinychat, "tinychat": tinychat,
		"lmcaddy/tinychat:latest": tinychat, "tinychat:LATEST": tinychat, "tinychat:f16": tinychat, "hf.co/lmcaddy/tinychat-GGUF:F16": tinychat,
		"library/tinychat": tinychat, "lmcaddy/tinychat-gguf": tinychat,
		"acme/two:q8_0": "acme/two@q8_0", "Two:Q4_0": "acme/two@q4_0", "two": "acme/two@q4_0", "acme/two@q8_0": "acme/two@q8_0",
		"acme/caf\u00e9": "acme/caf\u00e9", "ACME/CAFÉ": "acme/caf\u00e9", "acme/" + decomposed + ":latest": "acme/caf\u00e9", decomposed: "acme/caf\u00e9",
		"gpt-4o": tinychat, "GPT-4O:latest": tinychat, "u\u0308nI\u0308code": tinychat, "four": tinychat, "FOUR:latest": tinychat,
		"acme/chat-4b": chat, "chat-4b": chat, "chat:4b": chat, // a key goes before an alias
		"claude-4": chat, "Claude-Opus": chat, "anything/else": chat, // and a pattern after all
	} {
		target, err := n.Names.Find(t.Context(), name)
		if err != nil || target.Model.Key != want || target.Instance != "" {
			t.Errorf("%q: %s %q, error %v, want %s", name, target.Model.Key, target.Instance, err, want)
		}
	}
	testkit.Eventually(t, "the log says that an alias is another model's key", func() bool { return log.has("an alias has no effect") && log.has("alias=acme/chat-4b") })
	s := n.Settings()
	s.Models = maps.Clone(s.Models)
	delete(s.Models, "acme/chat-4b")
	push(t, n, 2, s)
	for name, ambiguous := range map[string]int{"nobody": 0, "same": 2, "SAME:latest": 2, "gone": 0, "two:q2_k": 0, "tinychat:q4_0": 0, "chat:7b": 0, "tinychat:": 0, "": 0} {
		_, err := n.Names.Find(t.Context(), name)
		missing, ok := errors.AsType[*catalog.NotFoundError](err)
		if !ok || len(missing.Ambiguous) != ambiguous || missing.Name != name {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

// TestFind_AFileThatHasJustCome is found by any spelling of its name.
func TestFind_AFileThatHasJustCome(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lmcaddy/tinychat:latest", "gpt", "GPT:latest", "g-4", "tinychat:f16"} {
		dir := withModel(t)
		file := filepath.Join(dir.Models(), "lmcaddy")
		if err := os.Rename(file, file+"-away"); err != nil {
			t.Fatal(err)
		}
		n := open(t, dir)
		push(t, n, 1, Settings{Models: map[string]ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt", "g-*"}}}})
		if _, err := n.Models(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"-away", file); err != nil {
			t.Fatal(err)
		}
		if target, err := n.Names.Find(t.Context(), name); err != nil || target.Model.Key != "lmcaddy/tinychat" {
			t.Errorf("%s: %s, error %v", name, target.Model.Key, err)
		}
	}
}

func TestSettings_AliasesInAnyCaseAreOne(t *testing.T) {
	t.Parallel()
	s := Settings{Models: map[string]ModelSettings{"p/a": {Aliases: []string{"GPT-4", "caf\u00e9"}}, "p/b": {Aliases: []string{"x", "Cafe\u0301"}}}}
	if err := s.Validate(); err == nil {
		t.Error("two models have the same alias")
	}
}

// TestCustom_OfAnotherName: each request asks whether its model is one that a client has made.
func TestCustom_OfAnotherName(t *testing.T) { // not parallel: it counts allocations
	n := open(t, withModel(t))
	push(t, n, 1, Settings{})
	if _, err := n.Names.Find(t.Context(), "lmcaddy/tinychat"); err != nil {
		t.Fatal(err)
	}
	if most := testing.AllocsPerRun(100, func() { n.Names.Custom("lmcaddy/tinychat") }); most > 5 {
		t.Errorf("%.0f allocations", most)
	}
}
