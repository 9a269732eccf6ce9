package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A backup is made while conversations are stored. In another home, the conversation goes on, the tokens work and are as limited as
// before, and what came after the backup isn't there.
func TestBackup_UnderLoad(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t), Site: []string{"lm_auth"}}
	s := harness.Start(h, config)
	token := created(t, h, "--name", "ann")
	limited := created(t, h, "--name", "bob", "--scopes", "models.read")
	first := s.As(token).NativeChat(harness.NativeAsk(capital)).Get("response_id").Str

	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 2 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.As(token).NativeChat(harness.NativeAsk(capital))
				}
			}
		})
	}
	file := filepath.Join(h.Work, "home.tar.zst")
	for i := range 3 { // each is a snapshot of its own moment
		_ = os.Remove(file)
		status, out, problem := h.CommandOutputs("backup", "--json", file)
		if status != 0 || gjson.Get(out, "schema").Int() < 3 {
			t.Errorf("backup %d: status %d: %s %s", i, status, out, problem)
		}
	}
	close(stop)
	load.Wait()
	after := s.As(token).NativeChat(harness.NativeAsk(capital)).Get("response_id").Str
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, error %v", info.Mode(), err)
	}
	wantFailed(t, h.Command("backup", file), "already exists")
	wantFailed(t, h.Command("restore", file), "in use")
	s.Stop(syscall.SIGTERM, harness.Patience)
	wantFailed(t, h.Command("restore", file), "--force")

	other := harness.NewHome(t)
	cut := filepath.Join(other.Work, "cut.tar.zst")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, content[:len(content)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, other.Command("restore", cut), "Nothing was changed")
	wantDone(t, other.Command("restore", file), "Restored")
	s = harness.Start(other, config)
	next := s.As(token).NativeChat(harness.NativeAsk(capital).After(first))
	if next.Get("response_id").Str == "" {
		t.Errorf("the conversation doesn't go on: %s", next.Raw)
	}
	s.As(token).Post(harness.NativeChatPath, harness.NativeAsk(capital).After(after)).Want(t, 404)
	s.As(limited).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, 403)
	s.As("").Get("/v1/models").Want(t, 401)
	s.Stop(syscall.SIGTERM, harness.Patience)

	// The first home gets its backup back: what came after it is gone.
	wantDone(t, h.Command("restore", "--force", file), "Restored")
	s = harness.Start(h, config)
	s.As(token).Post(harness.NativeChatPath, harness.NativeAsk(capital).After(after)).Want(t, 404)
	s.As(token).NativeChat(harness.NativeAsk(capital).After(first))
}

// A restore that is killed leaves the old home or the new one, whenever that happens.
func TestRestore_Killed(t *testing.T) {
	t.Parallel()
	from := harness.NewHome(t)
	token := created(t, from, "--name", "new")
	if err := os.WriteFile(filepath.Join(from.Dir, "mcp.json"), []byte(`{"mcpServers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(from.Work, "home.tar.zst")
	wantDone(t, from.Command("backup", "--models", file))

	h := harness.NewHome(t)
	created(t, h, "--name", "old")
	staging := filepath.Join(h.Dir, ".restoring")
	for i := range 6 {
		waitFor := staging
		if i > 2 { // it is killed later: when it has decided what to do
			waitFor = filepath.Join(staging, "plan.json")
		}
		p := h.Begin(0, "restore", "--force", file)
		harness.Eventually(t, harness.Patience, "the restore has begun", func() bool {
			_, err := os.Stat(waitFor)
			return err == nil || p.HasEnded()
		})
		p.Kill()
		names := h.Command("token", "ls").Output
		_, err := os.Stat(filepath.Join(h.Dir, "mcp.json"))
		isNew, isOld := strings.Contains(names, " new "), strings.Contains(names, " old ")
		if isNew == isOld || isNew != (err == nil) {
			t.Fatalf("half a home: mcp.json %v, tokens:\n%s", err, names)
		}
		if _, err := os.Stat(staging); err == nil {
			t.Error("files of the restore are left")
		}
		if i > 2 && isOld {
			t.Error("a restore that had decided what to do was forgotten")
		}
		if isNew {
			break // the next ones could leave nothing but that
		}
	}
	wantDone(t, h.Command("restore", "--force", file), "Restored")
	s := harness.Start(h, harness.Config{Site: []string{"lm_auth"}})
	if a := s.As(token).Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("it answers %q", a.Content)
	}
}
