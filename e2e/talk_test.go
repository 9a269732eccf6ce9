package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The commands that talk to a running server.
func TestTalk_ListLoadUnload(t *testing.T) {
	t.Parallel()
	overEngines(t, talkListLoadUnload)
}

func talkListLoadUnload(t *testing.T, e engine) {
	s := e.start(t, harness.Config{})
	listed := func(want string) {
		t.Helper()
		r := s.Command("ls")
		wantDone(t, r, "MODEL")
		if line := lineWith(r.Output, harness.Model); !strings.HasSuffix(strings.TrimSpace(line), want) {
			t.Errorf("%q, want %s at its end", line, want)
		}
	}
	wantDone(t, s.Command("status"), "is running on "+s.Dir, s.Base, "No model is loaded.")
	listed(" -")

	wantDone(t, s.Command("load", harness.Bare, "--context-length", "1000"), harness.Model+" is loaded", fmt.Sprintf("%d tokens", e.context))
	listed(" loaded")
	wantDone(t, s.Command("load", harness.Bare), secondInstance)
	listed(" loaded (2)")
	status := s.Command("status", "--json")
	wantDone(t, status)
	if ids := gjson.Get(status.Output, "instances.#.id").Raw; !strings.Contains(ids, secondInstance) || !gjson.Get(status.Output, "running").Bool() {
		t.Errorf("%s", status.Output)
	}

	wantFailed(t, s.Command("unload", harness.Bare), "several instances", secondInstance)
	wantDone(t, s.Command("unload", secondInstance), secondInstance+" is unloaded.")
	wantDone(t, s.Command("unload", harness.Bare), harness.Model+" is unloaded.")
	listed(" -")
	wantDone(t, s.Command("load", harness.Model))
	wantDone(t, s.Command("unload", "--all"), harness.Model+" is unloaded.")
	wantDone(t, s.Command("unload", "--all"), "No model is loaded.")
	wantFailed(t, s.Command("unload", harness.Bare), harness.Bare)
	wantFailed(t, s.Command("load", "nobody/nothing"), "nobody/nothing", harness.Model)
	wantFailed(t, s.Command("load", harness.Bare, "--num-experts", "0"), "--num-experts")
}

func TestTalk_ImportAndRemove(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	file := filepath.Join(s.Work, "Further-F16.gguf")
	if err := os.WriteFile(file, harness.ShippedModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	const key = "somebody/further"
	for range 2 { // the first one only prints it
		wantDone(t, s.Command("import", file, "--repo", "Somebody/Further-GGUF", "--copy", "--dry-run"), key, "would be copied", file)
	}
	wantDone(t, s.Command("import", file, "--repo", "Somebody/Further-GGUF", "--copy"), key)
	wantFailed(t, s.Command("import", file, "--repo", "Somebody/Further-GGUF", "--copy"), "already exists")
	wantFailed(t, s.Command("import", file, "--repo", "Somebody/Further-GGUF", "--dry-run"), "already exists")
	wantDone(t, s.Command("ls"), key)

	wantDone(t, s.Command("load", key))
	wantFailed(t, s.Command("rm", key), "--yes")
	wantFailed(t, s.Command("rm", key, "--yes"), key, "nload")
	wantDone(t, s.Command("unload", key))
	wantDone(t, s.Command("rm", "Somebody/Further", "--yes"), "is deleted")
	if line := lineWith(s.Command("ls").Output, key); line != "" {
		t.Errorf("it is still listed: %s", line)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file that was copied: %v", err)
	}

	wantDone(t, s.Command("import", file), "local/further")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file that was moved: %v", err)
	}
}

func TestTalk_Chat(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	ask := []string{"chat", harness.Bare, "--temperature", "0"}
	if r := s.Command(append(ask, "--prompt", capital)...); r.Status != 0 || r.Output != paris+"\n" {
		t.Errorf("status %d: %q", r.Status, r.Output)
	}
	if r := s.CommandWithInput(capital+"\n", ask...); r.Status != 0 || r.Output != paris+"\n" {
		t.Errorf("on standard input: status %d: %q", r.Status, r.Output)
	}
	wantDone(t, s.Command(append(ask, "--prompt", capital, "--stats")...), paris, "tokens in", "tokens/s")
	wantFailed(t, s.CommandWithInput(" \n", ask...), "nothing to ask")
	wantFailed(t, s.Command("chat", "nobody/nothing", "--prompt", "x"), "nobody/nothing")
	wantFailed(t, s.Command("chat", harness.Bare, "--prompt", "x", "--reasoning", "nonsense"), "nonsense", "off")
}

func TestTalk_ToAHost(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	elsewhere := harness.NewBareHome(t)
	host := strings.TrimPrefix(s.Base, "http://")
	wantDone(t, elsewhere.Command("ls", "--host", host), harness.Model)
	wantDone(t, elsewhere.Command("status", "--host", s.Base+"/"), s.Base, "No model is loaded.")
	wantDone(t, elsewhere.Command("load", harness.Model, "--host", host, "--token", "sk-any"), "is loaded")
	nobody := harness.Address(harness.FreePort(t))
	wantFailed(t, elsewhere.Command("ls", "--host", nobody), nobody, "--host")
	wantFailed(t, elsewhere.Command("ls", "--token", "sk-any"), "--host")
}

func TestTalk_WithoutAServer(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	home.AddModel("somebody/broken", "broken.gguf", []byte("GGUF"))
	r := home.Command("ls")
	wantDone(t, r, "No lmcaddy is running on "+home.Dir, "models_dir", "can't be used", "somebody/broken: ")
	if line := lineWith(r.Output, harness.Model); !strings.HasSuffix(strings.TrimSpace(line), " -") {
		t.Errorf("%q", line)
	}
	for _, command := range [][]string{
		{"status"}, {"load", harness.Model}, {"unload", "--all"}, {"get"}, {"get", "a/b"}, {"rm", harness.Model, "--yes"}, {"chat", harness.Model, "-p", "x"},
	} {
		wantFailed(t, home.Command(command...), "no lmcaddy seems to be running", home.Dir, "lmcaddy serve", "LMCADDY_HOME", "--host")
	}
	if _, err := os.Stat(filepath.Join(home.Dir, "run")); !os.IsNotExist(err) {
		t.Errorf("the run folder: %v", err)
	}
	empty := harness.NewBareHome(t)
	wantDone(t, empty.Command("ls"), "There are no models.")
	if entries, err := os.ReadDir(empty.Dir); err != nil || len(entries) > 0 {
		t.Errorf("ls has made %v, %v", entries, err)
	}
}

// The command lists the same with and without a server, except for what is loaded, and which context a request gets.
func TestTalk_ListIsTheSameWithAndWithoutAServer(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	home.AddModel("somebody/broken", "broken.gguf", []byte("GGUF"))
	models := func() string {
		t.Helper()
		r := home.Command("ls", "--json")
		wantDone(t, r, "somebody/broken")
		return r.Output[strings.Index(r.Output, "{\n"):] // after the message for people
	}
	without := models()
	harness.Start(home, harness.Config{})
	if with := models(); strings.Replace(with, `      "context_length": 8192,`+"\n", "", 1) != without {
		t.Errorf("with a server:\n%s\nwithout:\n%s", with, without)
	}
}
