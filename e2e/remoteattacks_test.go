package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// quotingKey is the key of a server of models that quotes it in its refusals, as some do.
const quotingKey = "far-key-0123456789"

func startQuoting(t *testing.T) (url string) {
	t.Helper()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"quoting","object":"model"}]}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"The header \"Authorization: %s\" is wrong."}}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(far.Close)
	return far.URL
}

// TestRemote_Attacks: what a client tries against the others by way of a remote harms nobody, and what a remote says of its key stays here.
func TestRemote_Attacks(t *testing.T) {
	t.Parallel()
	box := harness.Start(harness.NewHome(t), harness.Config{})
	s := harness.Start(newDoor(t), harness.Config{LM: []string{
		remoteBlock(box.Base, "box"),
		remoteBlock(startQuoting(t), "quoting", "kind openai", "key "+quotingKey),
	}})
	waitModel(s, harness.Model, true)
	waitModel(s, "quoting", true)
	s.Chat(harness.Ask(capital)) // loads it
	beenEverywhere := strings.TrimSuffix(strings.Repeat("1.1 lmcaddy-x, ", 8), ", ")
	for name, a := range map[string]struct {
		header http.Header
		model  string
		status int
		says   string
	}{
		"a forged Via":                 {http.Header{"Via": {beenEverywhere}}, harness.Model, http.StatusOK, paris},
		"a forged Via, like a server":  {http.Header{"Via": {beenEverywhere}, "User-Agent": {"lmcaddy"}}, harness.Model, http.StatusServiceUnavailable, "remote_loop"},
		"an error that quotes our key": {nil, "quoting", http.StatusBadRequest, "is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			for range 3 {
				got := s.PostWith(a.header, harness.ChatPath, harness.Ask(capital).With("model", a.model))
				if got.Status != a.status || !strings.Contains(got.Body, a.says) || strings.Contains(got.Body, quotingKey) {
					t.Errorf("status %d: %s", got.Status, got.Body)
				}
				if other := s.Post(harness.ChatPath, harness.Ask(capital)); other.Status != http.StatusOK {
					t.Errorf("another's request has status %d: %s", other.Status, other.Body)
				}
			}
		})
	}
	wantNoSecretsBut(t, s, "autosave.json", "key:"+quotingKey) // which has the configuration
}
