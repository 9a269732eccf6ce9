package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// remoteBlock is the block of a remote, with further lines.
func remoteBlock(base, name string, more ...string) string {
	return fmt.Sprintf("remote %s {\n\t\t\tname %s\n\t\t\t%s\n\t\t}", base, name, strings.Join(more, "\n\t\t\t"))
}

// newDoor makes a home without an engine and without a model.
func newDoor(t *testing.T) *harness.Home {
	t.Helper()
	h := harness.NewBareHome(t)
	h.Path = os.Getenv("PATH")
	return h
}

// waitModel waits until a server lists a model.
func waitModel(s *harness.Server, key string, is bool) {
	s.T.Helper()
	harness.Eventually(s.T, harness.Patience, "the list of the model "+key, func() bool {
		return s.Get("/api/v1/models").Want(s.T, http.StatusOK).Get(`models.#(key=="`+key+`")`).Exists() == is
	})
}

// waitRemote waits until what a server says of its remotes contains a text.
func waitRemote(s *harness.Server, text string) {
	s.T.Helper()
	harness.Eventually(s.T, harness.Patience, "a remote with "+text, func() bool {
		return strings.Contains(s.Get("/api/v1/ps").Want(s.T, http.StatusOK).Get("remotes").Raw, text)
	})
}

// TestRemote_ThatFails: a second lmcaddy is killed amid an answer, starts again, and hangs amid another.
func TestRemote_ThatFails(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	config := harness.Config{Port: harness.FreePort(t)}
	box := harness.Start(home, config)
	s := harness.Start(newDoor(t), harness.Config{LM: []string{remoteBlock(box.Base, "box", "stall_timeout 5s")}})
	waitModel(s, harness.Model, true)
	box.Chat(harness.Ask(capital)) // nothing is sent while the model is loaded

	stream := s.Stream(harness.Long(6000))
	stream.WaitContent()
	box.Kill()
	stream.WaitEnd()
	if stream.IsWhole() {
		t.Error("an answer whose remote was killed looks whole")
	}
	if r := s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, http.StatusServiceUnavailable); r.Get("error.code").Str != "remote_unreachable" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%v %s", r.Header, r.Body)
	}

	box = harness.Start(home, config)
	harness.Eventually(t, harness.Patience, "an answer of the remote that is back", func() bool {
		return s.Post(harness.ChatPath, harness.Ask(capital)).Status == http.StatusOK
	})
	stream = s.Stream(harness.Long(6000))
	stream.WaitContent()
	box.Pause()
	begun := time.Now()
	stream.WaitEnd()
	if took := time.Since(begun); stream.IsWhole() || took > time.Minute {
		t.Errorf("an answer whose remote hangs ends after %s; it looks whole: %v", took, stream.IsWhole())
	}
	box.Resume()
	harness.Eventually(t, harness.Patience, "an answer of the remote that goes on", func() bool {
		return s.Post(harness.ChatPath, harness.Ask(capital)).Status == http.StatusOK
	})
}

// startLlamaServer starts a llama-server with a model, as somebody else does, and returns its URL. Its key is far-key.
func startLlamaServer(h *harness.Home, executable, model string, more ...string) (base string) {
	t := h.T
	t.Helper()
	port := harness.FreePort(t)
	file := filepath.Join(h.Dir, "models", model, filepath.Base(model)+"-f16.gguf")
	cmd := exec.Command(executable, append([]string{"-m", file, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--api-key", "far-key", "-np", "2", "--threads", "1", "--alias", model}, more...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + harness.Address(port)
}

// TestRemote_RealLlamaServer: a llama-server that somebody else has started. A reload changes how it is reached.
func TestRemote_RealLlamaServer(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	base := startLlamaServer(home, home.OwnRuntimes(), harness.Model)
	config := harness.Config{Port: harness.FreePort(t), LM: []string{remoteBlock(base, "far", "key far-key")}}
	s := harness.Start(newDoor(t), config)
	waitModel(s, harness.Model, true)
	if a := s.Chat(harness.Ask(capital)); a.Content != paris || a.Usage.Prompt == 0 {
		t.Errorf("%+v", a)
	}
	count := s.Post("/v1/messages/count_tokens", harness.Ask(capital)).Want(t, http.StatusOK)
	if count.Get("input_tokens").Int() == 0 {
		t.Errorf("%s", count.Body)
	}
	if r := s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model}).Want(t, http.StatusBadRequest); r.Get("error.code").Str != "not_supported" {
		t.Errorf("%s", r.Body)
	}
	stream := s.Stream(harness.Long(1000))
	stream.WaitContent()
	config.LM = []string{remoteBlock(base, "far", "key another")}
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("%s", r.Output)
	}
	waitRemote(s, "refuses the key")
	stream.WaitEnd()
	if !stream.IsWhole() {
		t.Error("a reload has ended an answer of a remote")
	}
	if r := s.Post(harness.ChatPath, harness.Ask(capital)); r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, "refuses the key") || strings.Contains(r.Body, base) {
		t.Errorf("with another key: %d %s", r.Status, r.Body)
	}
	config.LM = nil
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("%s", r.Output)
	}
	waitModel(s, harness.Model, false)
	s.Post(harness.ChatPath, harness.Ask(capital)).Want(t, http.StatusNotFound)
}

// TestRemote_OfEachOther: two servers that are remotes of each other, and of themselves. Each answers for the other, and no request goes round.
func TestRemote_OfEachOther(t *testing.T) {
	t.Parallel()
	ports := []int{harness.FreePort(t), harness.FreePort(t)}
	var servers []*harness.Server
	for i, name := range []string{"one", "two"} {
		h := harness.NewHome(t)
		h.AddModel("only/"+name, "model-f16.gguf", harness.ShippedModel(t))
		servers = append(servers, harness.Start(h, harness.Config{Port: ports[i], LM: []string{
			remoteBlock("http://"+harness.Address(ports[1-i]), "other", "prefer -1"),
			remoteBlock("http://"+harness.Address(ports[i]), "self", "prefer -2"),
		}}))
	}
	for i, other := range []string{"two", "one"} {
		s := servers[i]
		waitModel(s, "only/"+other, true)
		waitRemote(s, "it is this server itself")
		for _, model := range []string{harness.Model, "only/" + other, "other/" + harness.Model} {
			if a := s.Chat(harness.Ask(capital).With("model", model)); a.Content != paris || !strings.HasPrefix(a.Model, "other/") {
				t.Errorf("%s: %+v", model, a)
			}
		}
		if r := s.Get("/api/v1/models").Get(`models.#(key=="only/` + other + `").via.#`); r.Int() != 1 {
			t.Errorf("the way to the other's model has %d servers", r.Int())
		}
	}
	s := servers[0]
	servers[1].Post(harness.UnloadPath, harness.Fields{"instance_id": "only/two"}).Want(t, http.StatusOK)
	if err := os.RemoveAll(filepath.Join(servers[1].Dir, "models", "only")); err != nil {
		t.Fatal(err)
	}
	waitModel(servers[1], "only/two", false)
	s.Post(harness.ChatPath, harness.Ask(capital).With("model", "only/two")).Want(t, http.StatusServiceUnavailable) // so it asks again
	harness.Eventually(t, time.Minute, "the end of a model that nobody has", func() bool {
		return !s.Get("/api/v1/models").Get(`models.#(key=="only/two")`).Exists()
	})
}
