package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A cached prompt reveals that somebody has asked the same before, by the figures and by the time.
func TestPromptCache_OfOneOwnerAlone(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("Count to 30. ", 12)
	for mode, isShared := range map[string]bool{"shared": true, "private": false} {
		t.Run(mode, func(t *testing.T) {
			h := harness.NewHome(t)
			port := harness.FreePort(t)
			s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(`{
	lm {
		prompt_cache %s
		engine llama_server {
			parallel 2
			args --threads 1
		}
	}
}

http://:%d {
	bind 127.0.0.1
	lm_auth
	lm_api
}
`, mode, port)))
			ann, bob := created(t, h, "--name", "ann"), created(t, h, "--name", "bob")
			cached := func(token string, n int, messages ...string) int64 {
				t.Helper()
				for i, text := range messages {
					messages[i] = fmt.Sprintf(`{"role":"user","content":%q}`, text)
				}
				body := fmt.Sprintf(`{"model":%q,"max_tokens":1,"n":%d,"messages":[%s]}`, harness.Model, n, strings.Join(messages, ","))
				reply := asked(t, s, token, harness.ChatPath, body)
				return gjson.Get(reply, "usage.prompt_tokens_details.cached_tokens").Int()
			}
			wantCached := func(who, token string, want bool, messages ...string) {
				t.Helper()
				if got := cached(token, 1, messages...); (got > 0) != want {
					t.Errorf("%s: %d tokens of the prompt were cached, want some: %v", who, got, want)
				}
			}
			wantCached("ann, at first", ann, false, prompt)
			wantCached("bob after ann", bob, isShared, prompt)
			wantCached("ann again", ann, true, prompt, "And on.")
			wantCached("bob again", bob, true, prompt, "And on.")
			secret := "A secret of ann's alone. " + prompt
			cached(ann, 2, secret) // on both slots
			wantCached("bob with what ann asked twice", bob, isShared, secret)
			text := fmt.Sprintf(`{"model":%q,"max_tokens":1,"prompt":%q}`, harness.Model, prompt)
			if got := asked(t, s, bob, "/v1/completions", text); gjson.Get(got, "choices.#").Int() != 1 {
				t.Errorf("%s", got)
			}
		})
	}
}

// asked returns the answer to a request with a token.
func asked(t *testing.T, s *harness.Server, token, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s %v", resp.Status, answer, err)
	}
	return string(answer)
}
