package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// FakeEngine is the fake engine as a program, with a script of internal/testing/fakeengine, for what a real engine can't be made to say.
type FakeEngine struct {
	Path string
	dir  string
}

// StartFake builds the fake engine, and writes its script next to it. A server that uses it needs the lines of [FakeEngine.Lines].
func StartFake(t testing.TB, script Fields) *FakeEngine {
	t.Helper()
	dir := t.TempDir()
	f := &FakeEngine{Path: filepath.Join(dir, "llama-server"), dir: dir}
	cmd := exec.Command("go", "build", "-o", f.Path, "./tools/fakeengine")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the fake engine: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Set(t, script)
	for _, folder := range []string{"gates", "starts"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Set replaces the script, also for what is running.
func (f *FakeEngine) Set(t testing.TB, script Fields) {
	t.Helper()
	text, err := json.Marshal(script)
	path := filepath.Join(f.dir, "script.json")
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Lines are those of the engine's block in a configuration.
func (f *FakeEngine) Lines() []string {
	return []string{"path " + f.Path, "sandbox off"} // it writes next to its executable
}

// Release lets whatever waits at a gate go on.
func (f *FakeEngine) Release(t testing.TB, gate string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "gates", gate), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
