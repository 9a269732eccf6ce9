package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go/http3"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// lan is a server with a plain site for its own machine, and a site with TLS and tokens on an address like a LAN's.
type lan struct {
	*harness.Server
	base  string // https://127.0.0.2:port
	root  string // the file of its root certificate
	roots *x509.CertPool
	token string
}

func startLAN(t *testing.T) *lan {
	t.Helper()
	h := withOthers(harness.NewHome(t))
	plain, port := harness.FreePort(t), harness.FreePort(t)
	s := h.Launch(plain, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(`{
	grace_period 15s
	skip_install_trust
	auto_https disable_redirects
	on_demand_tls {
		permission lm
	}
	lm {
		hosts models.example.org
		engine llama_server {
			args --threads 1
		}
	}
}

http://:%d {
	bind 127.0.0.1
	lm_api
}

:%d {
	bind 127.0.0.2 127.0.0.1
	tls internal {
		on_demand
	}
	log {
		output file {env.LMCADDY_HOME}/access.log
		format filter {
			wrap json
			fields {
				request>headers>X-Api-Key delete
			}
		}
	}
	lm_auth
	lm_api
}
`, plain, port)))
	l := &lan{Server: s, base: fmt.Sprintf("https://127.0.0.2:%d", port), roots: x509.NewCertPool()}
	l.token = created(t, h, "--name", "laptop")
	certificate := l.curl("--insecure", l.base+"/api/v1/root.crt")
	if !l.roots.AppendCertsFromPEM([]byte(certificate)) {
		t.Fatalf("no certificate: %s", certificate)
	}
	l.root = h.WriteFile("root.crt", certificate)
	return l
}

// created returns a token that `lmcaddy token create` has made.
func created(t testing.TB, h *harness.Home, args ...string) string {
	t.Helper()
	r := h.Command(append([]string{"token", "create"}, args...)...)
	lines := strings.Split(strings.TrimSpace(r.Output), "\n")
	token := lines[len(lines)-1] // the lines before are standard error
	if r.Status != 0 || !strings.HasPrefix(token, "sk-lm-") || len(token) != len("sk-lm-")+8+1+20 {
		t.Fatalf("status %d: %s", r.Status, r.Output)
	}
	return token
}

func (l *lan) curl(args ...string) string {
	l.T.Helper()
	out, err := exec.Command("curl", append([]string{"--silent", "--show-error", "--max-time", "60"}, args...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		errors.As(err, &exit)
		l.T.Fatalf("curl %v: %v\n%s", args, err, exit.Stderr)
	}
	return string(out)
}

// wantStream reads a chat's stream, whose first event has to arrive while the model is still working.
func (l *lan) wantStream(t *testing.T, stream io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(stream)
	events, last, before := 0, "", 0
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if events++; events == 3 {
			engine := l.Engine()
			engine.Pause(t)
			if o := ps(l.Server); len(o.Instances) != 1 || o.Instances[0].InUse == 0 {
				t.Errorf("the first events come when all is over: %+v", o.Instances)
			}
			engine.Resume(t)
			before = events
		}
		last = data
	}
	if err := lines.Err(); err != nil || last != "[DONE]" || events < before+10 {
		t.Errorf("%v, %d events, the last is %s", err, events, last)
	}
}

const shortChat = `{"model":"` + harness.Model + `","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`

const longStream = `{"model":"` + harness.Model + `","stream":true,"ignore_eos":true,"max_tokens":1000,"temperature":0,"messages":[{"role":"user","content":"Count to 30"}]}`

func TestLAN_EachVersionOfHTTPStreams(t *testing.T) {
	t.Parallel()
	l := startLAN(t)
	for flag, version := range map[string]string{"--http1.1": "1.1", "--http2": "2"} {
		t.Run("HTTP "+version, func(t *testing.T) {
			if got := l.curl("--cacert", l.root, flag, "--write-out", " %{http_version} %{http_code}", l.base+"/api/v1/health"); got != `{"status":"ok"} `+version+" 200" {
				t.Errorf("%s", got)
			}
			cmd := exec.Command("curl", "--silent", "--no-buffer", "--cacert", l.root, flag, "--max-time", "120", "--header", "Authorization: Bearer "+l.token,
				"--data", longStream, l.base+harness.ChatPath)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			l.wantStream(t, out)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("HTTP 3", func(t *testing.T) {
		transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: l.roots}}
		defer func() { _ = transport.Close() }()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+harness.ChatPath, strings.NewReader(longStream))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", l.token)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 3 {
			t.Errorf("%s %s", resp.Proto, resp.Status)
		}
		l.wantStream(t, resp.Body)
	})
}

func TestLAN_TokensAndTheSDK(t *testing.T) {
	t.Parallel()
	l := startLAN(t)
	client := nodeClient(t, l.Home, "openai", "openai.cjs", l.base)
	client.Env = append(client.Env, "NODE_EXTRA_CA_CERTS="+l.root, "OPENAI_API_KEY="+l.token)
	runClient(t, client)
	refused := func(token string, status int, code string) {
		t.Helper()
		answer := l.curl("--cacert", l.root, "--header", "Authorization: Bearer "+token, "--data", shortChat, "--write-out", "%{http_code}", l.base+harness.ChatPath)
		if !strings.HasSuffix(answer, fmt.Sprint(status)) || gjson.Get(answer, "error.code").Str != code {
			t.Errorf("%s", answer)
		}
	}
	refused("lm-studio", 401, "invalid_api_key")
	refused(created(t, l.Home, "--name", "reader", "--scopes", "models.read"), 403, "missing_scope")
	refused(created(t, l.Home, "--name", "embedder", "--models", "other/*"), 404, "model_not_found")

	// Changes of a token by the command line take effect at once, also over --host.
	list := l.Command("token", "ls", "--json")
	id := gjson.Get(list.Output, `tokens.#(name=="laptop").id`).Str
	wantDone(t, l.Command("token", "edit", id, "--scopes", "models.read"), id, "models.read")
	refused(l.token, 403, "missing_scope")
	wantDone(t, l.Command("token", "revoke", id), id+" is revoked.")
	refused(l.token, 401, "invalid_api_key")
	wantFailed(t, l.Command("token", "rm", id), "no token")
	admin := created(t, l.Home, "--name", "admin", "--scopes", "admin")
	plain := l.Base
	wantDone(t, l.Command("token", "ls", "--host", plain, "--token", admin), "embedder", "never")
	wantFailed(t, l.Command("token", "ls", "--host", plain), "API token is required")

	l.wantNoSecrets(t, l.token, admin)
}

// wantNoSecrets checks that the secret halves of tokens are in nothing that is stored or shown.
func (l *lan) wantNoSecrets(t *testing.T, tokens ...string) {
	t.Helper()
	access, err := os.ReadFile(l.Dir + "/access.log")
	if err != nil || !strings.Contains(string(access), `"Authorization":["REDACTED"]`) {
		t.Errorf("the access log: %v\n%.600s", err, access)
	}
	wantNoSecrets(t, l.Server, tokens...)
}

// Anybody can ask for a certificate of any name. Only those for this machine's names are issued; others leave no trace.
func TestLAN_CertificatesForThisMachineAlone(t *testing.T) {
	t.Parallel()
	l := startLAN(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(l.base, "https://"))
	shake := func(name string) error { // the name isn't sent if it is an address
		address := "127.0.0.2"
		if net.ParseIP(name) != nil {
			address = name
		}
		conn, err := tls.Dial("tcp", net.JoinHostPort(address, port), &tls.Config{ServerName: name, RootCAs: l.roots})
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "127.0.0.2", hostname, strings.ToUpper(hostname), "app.localhost", "models.example.org"} {
		if err := shake(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	before := files(t, l.Dir)
	random := rand.New(rand.NewPCG(13, 0))
	for i := range 300 {
		name := fmt.Sprintf("%x.%s", random.Uint64(), []string{"example", "local", "lan", hostname, "models.example.org"}[i%5])
		if err := shake(name); err == nil {
			t.Errorf("there is a certificate for %q", name)
		}
	}
	if diff := cmp.Diff(before, files(t, l.Dir)); diff != "" {
		t.Errorf("the refused have left files (-before +after):\n%s", diff)
	}
	if err := shake("localhost"); err != nil {
		t.Errorf("after those: %v", err)
	}
}

// files returns the files below a folder.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestToken_BeforeTheServerRuns(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	if err := os.Chmod(h.Dir, 0o755); err != nil { // which is taken back
		t.Fatal(err)
	}
	early := created(t, h, "--name", "early", "--scopes", "admin")
	if info, err := os.Stat(h.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the home has the mode %v, %v", info.Mode(), err)
	}
	wantDone(t, h.Command("token", "ls"), "No lmcaddy is running on", "early")
	s := harness.Start(h, harness.Config{})
	wantDone(t, s.Command("token", "ls", "--host", s.Base, "--token", early), "early")
	late := created(t, h, "--name", "late", "--scopes", "admin", "--expires", "30d")
	wantDone(t, s.Command("token", "ls", "--host", s.Base, "--token", late), "late")
	for file, mode := range map[string]os.FileMode{"": 0o700, "run": 0o700, "lmcaddy.db": 0o600, "run/lmcaddy.sock": 0o600, "run/admin.sock": 0o600, "caddy": 0o700, "caddy/autosave.json": 0o600} {
		if info, err := os.Stat(h.Dir + "/" + file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	wantNoSecrets(t, s, early, late)
}

// Two servers on one PostgreSQL: a token that is revoked on one is refused by the other within a second.
func TestToken_IsRevokedOnAllServers(t *testing.T) {
	t.Parallel()
	url := harness.Postgres(t)
	both := [2]*harness.Server{}
	for i := range both {
		h := harness.NewHome(t)
		port := harness.FreePort(t)
		both[i] = h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(`{
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		store postgres %q
	}
}

http://:%d {
	bind 127.0.0.1
	lm_api
}
`, url, port)))
	}
	token := created(t, both[0].Home, "--name", "shared", "--scopes", "admin")
	id := strings.TrimPrefix(strings.Split(token, ":")[0], "sk-lm-")
	list := func(s *harness.Server) harness.Result {
		return s.Command("token", "ls", "--host", s.Base, "--token", token)
	}
	wantDone(t, list(both[1]), "shared")
	wantDone(t, both[0].Command("token", "revoke", id))
	revoked := time.Now()
	wantFailed(t, list(both[0]), "token")
	for begun := revoked; accepted(t, both[1], token); begun = time.Now() {
		if begun.Sub(revoked) > time.Second {
			t.Fatal("the other server took it more than a second later")
		}
	}
	t.Logf("the other server refused it %s after it was revoked", time.Since(revoked))

	h := both[0].Home
	both[0].Stop(syscall.SIGINT, harness.Patience)
	wantFailed(t, h.Command("token", "ls"), "PostgreSQL", "start the server")
}

// TestToken_WhileTheStoreIsAway: a token that was found valid stays valid for a while, and no other is accepted.
func TestToken_WhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	database := harness.StartPostgres(t, nil)
	h, port := harness.NewHome(t), harness.FreePort(t)
	s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(`{
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		store postgres %q
	}
}

http://:%d {
	bind 127.0.0.1
	lm_auth
	lm_api
}
`, database.URL, port)))
	token, other := created(t, h, "--name", "known"), created(t, h, "--name", "not seen yet")
	chat := func(token string) int {
		t.Helper()
		body := `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"max_tokens":3}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := chat(token); got != http.StatusOK {
		t.Fatal(got)
	}
	database.Kill()
	for ended := time.Now(); time.Since(ended) < 2*time.Second; { // a token that was looked up is cached for half a second
		if got := chat(token); got != http.StatusOK {
			t.Fatalf("%d, %s after the database ended", got, time.Since(ended))
		}
	}
	if got := chat(other); got != http.StatusServiceUnavailable {
		t.Errorf("a token that was never seen: %d", got)
	}
	if got := chat("sk-lm-abcdefgh:aaaaaaaaaaaaaaaaaaaa"); got == http.StatusOK {
		t.Error("a token that nobody has was let in")
	}
}

// accepted reports whether a server accepts a token that was an administrator's.
func accepted(t *testing.T, s *harness.Server, token string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Base+"/api/v1/tokens", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
