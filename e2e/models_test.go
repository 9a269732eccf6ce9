package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestModels_BrokenFilesDisturbNothingAndAreExplained(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	shipped := harness.ShippedModel(t)
	broken := map[string]struct {
		content []byte
		reason  string // the reason in the error and the log, as a pattern
	}{
		"broken/text":     {[]byte("This is no model, whatever its name says.\n"), `not a GGUF file`},
		"broken/empty":    {nil, `empty`},
		"broken/header":   {shipped[:2000], `truncated|header`},
		"broken/half":     {shipped[:len(shipped)/2], `truncated`},
		"broken/fourbyte": {shipped[:4], `truncated|header`},
	}
	paths := map[string]string{}
	for key, b := range broken {
		paths[key] = home.AddModel(key, "model.gguf", b.content)
	}
	// A broken file next to a good one must not change the good one's key.
	beside := home.AddModel(harness.Model, "another.gguf", []byte("no model either"))

	s := harness.Start(home, harness.Config{})
	var keys []string
	for _, m := range s.Get("/api/v1/models").Want(t, http.StatusOK).Get("models").Array() {
		keys = append(keys, m.Get("key").Str)
	}
	if diff := cmp.Diff([]string{harness.Model}, keys); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	for key, b := range broken {
		t.Run(key, func(t *testing.T) {
			reason := regexp.MustCompile(b.reason)
			reply := s.In(t).Post(harness.ChatPath, harness.Ask(capital).With("model", key)).Want(t, http.StatusServiceUnavailable)
			wantOpenAIError(t, reply, "server_error", "model_load_failed")
			if message := reply.Get("error.message").Str; !reason.MatchString(message) || !strings.Contains(message, key) {
				t.Errorf("the message names %q, and says %s: %s", key, b.reason, message)
			}
			s.In(t).Post(harness.LoadPath, harness.Fields{"model": key}).Want(t, http.StatusServiceUnavailable)
			if line := lineWith(s.Log(), paths[key]); !reason.MatchString(line) {
				t.Errorf("the log's line about %s: %q", paths[key], line)
			}
		})
	}
	if lineWith(s.Log(), beside) == "" {
		t.Errorf("the log doesn't name %s", beside)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("the good model answers %q", a.Content)
	}
	s.Engine() // none was started for the others
}

func TestModels_OneThatIsAddedLaterIsFound(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	s := harness.Start(home, harness.Config{})
	request := harness.Ask(capital).With("model", "somebody/later")
	s.Post(harness.ChatPath, request).Want(t, http.StatusNotFound)
	home.AddModel("Somebody/Later-GGUF", "later.gguf", harness.ShippedModel(t))
	harness.Eventually(t, harness.Patience, "the new model answers", func() bool {
		reply := s.Post(harness.ChatPath, request)
		return reply.Status == http.StatusOK && reply.Answer(s).Content == paris
	})
}

// lineWith returns the first line of a log that contains a text; empty if there is none.
func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
