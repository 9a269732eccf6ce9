package caddymodule

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddyfileformat "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/translate"
)

// runSite runs a Caddyfile with a fake engine and the models of modelsHome, and gives the address of its site. The site listens
// on a socket of the test's, so the Caddyfile has {site} for its address.
func runSite(t *testing.T, script *fakeengine.Script, global, site string) (client *http.Client, stop func()) {
	t.Helper()
	fake := fakeengine.Install(t, script)
	dir, err := os.MkdirTemp("", "lm") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	caddyfile := "{\nadmin off\npersist_config off\n" + global + "\nlm {\nhome " + string(modelsHome(t)) + "\nengine llama_server {\npath " + fake.Path + "\nsandbox off\n}\n}\n}\n" +
		"http:// {\nbind unix/" + socket + "\n" + site + "\n}\n"
	adapted, err := adapt(t, "Caddyfile", caddyfileformat.Format([]byte(caddyfile)))
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		leaving.Wait() // the home is closed after the last request, also one that has become a WebSocket
	}
	t.Cleanup(stop)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, stop
}

func post(t *testing.T, client *http.Client, path, body string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// Configurations are the whole process's, so these tests aren't parallel.
func TestAccessLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "access.log")
	client, stop := runSite(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}}}}, "",
		"log {\noutput file "+log+"\nformat json\n}\nlog_append which {http.lm.model}\nlog_append out {http.lm.tokens_out}\nlog_append nothing {http.lm.nothing}\nlm_api")
	const ask = `{"model":"test/one","messages":[{"role":"user","content":"a secret question"}]}`
	post(t, client, "/v1/chat/completions", ask, http.Header{"X-Request-Id": {"first"}})
	post(t, client, "/v1/chat/completions", `{"model":"<b>nobody</b>"}`, http.Header{"X-Request-Id": {"second"}})
	client.CloseIdleConnections()
	stop() // from then on all is written
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "secret question") || strings.Contains(string(content), "nobody") {
		t.Errorf("what was asked is in the log: %s", content)
	}
	type entry struct {
		Status int
		LM     map[string]any
		Which  string
		Out    any
	}
	var entries []entry
	for line := range strings.Lines(string(content)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if len(entries) != 2 {
		t.Fatalf("%d entries: %s", len(entries), content)
	}
	for _, name := range []string{"first_token", "per_token", "load"} {
		if took, _ := entries[0].LM[name].(float64); took <= 0 {
			t.Errorf("%s is %v", name, entries[0].LM[name])
		}
	}
	for _, name := range []string{"first_token", "per_token", "load", "queue"} {
		delete(entries[0].LM, name)
	}
	want := []entry{
		{200, map[string]any{
			"request": "first", "dialect": "openai", "outcome": "ok", "model": "test/one", "instance": "test/one", "tokens_in": 7.0, "tokens_cached": 0.0, "tokens_out": 4.0,
		}, "test/one", 4.0},
		{404, map[string]any{"request": "second", "dialect": "openai", "outcome": "model_not_found"}, "", 0.0},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, content)
	}
}

func TestLoggedSummary_LeavesOutWhatDoesNotApply(t *testing.T) {
	t.Parallel()
	fields := func(s record.Summary) map[string]any {
		to := zapcore.NewMapObjectEncoder()
		if err := (*loggedSummary)(&s).MarshalLogObject(to); err != nil {
			t.Fatal(err)
		}
		return to.Fields
	}
	all := record.Summary{
		ID: "r", Dialect: "openai", Outcome: "ok", Model: "m", Instance: "m:2", Owner: "WYVCC6L4", Token: "WYVCC6L4", TokenName: "phone",
		Usage: translate.Usage{Prompt: 3, Cached: 1, Completion: 2}, Tools: 4, Queue: 1, Load: 2, Restore: 3, FirstToken: 4, PerToken: 5,
	}
	want := map[string]any{
		"request": "r", "dialect": "openai", "outcome": "ok", "model": "m", "instance": "m:2", "owner": "WYVCC6L4", "token": "phone",
		"tokens_in": 3, "tokens_cached": 1, "tokens_out": 2, "tools": 4, "queue": time.Duration(1), "load": time.Duration(2), "restore": time.Duration(3),
		"first_token": time.Duration(4), "per_token": time.Duration(5),
	}
	if diff := cmp.Diff(want, fields(all)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"request": "r", "outcome": "unknown_endpoint"}, fields(record.Summary{ID: "r", Outcome: "unknown_endpoint"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	replace := caddy.NewReplacer()
	tellCaddy(context.WithValue(t.Context(), caddy.ReplacerCtxKey, replace), &record.Summary{
		ID: "r", Dialect: "v0", Outcome: "ok", Model: "m", Instance: "m:2", Owner: "o", TokenName: "phone",
		Usage: translate.Usage{Prompt: 3, Cached: 1, Completion: 2}, Tools: 4, Queue: time.Second, Load: 2 * time.Second, FirstToken: 1500 * time.Millisecond, PerToken: time.Millisecond,
	})
	for name, want := range map[string]string{
		"request": "r", "dialect": "v0", "outcome": "ok", "model": "m", "instance": "m:2", "owner": "o", "token": "phone", "tokens_in": "3", "tokens_cached": "1",
		"tokens_out": "2", "tools": "4", "queue": "1", "load": "2", "first_token": "1.5", "per_token": "0.001", "other": "",
	} {
		if got := replace.ReplaceAll("{http.lm."+name+"}", ""); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
