package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	os.Exit(m.Run())
}

// healthy is an installation with nothing wrong.
func healthy(t *testing.T) *Subject {
	t.Helper()
	dir := home.Dir(filepath.Join(t.TempDir(), "home"))
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	return &Subject{Home: dir, Config: &caddymodule.Described{}, dev: t.TempDir()}
}

// worst returns the worst status of findings.
func worst(findings []Finding) Status {
	order := []Status{OK, Warning, Problem}
	most := 0
	for _, f := range findings {
		most = max(most, slices.Index(order, f.Status))
	}
	return order[most]
}

// wantFound checks that findings have a status, and mention something.
func wantFound(t *testing.T, found []Finding, status Status, mention string) {
	t.Helper()
	var all strings.Builder
	for _, f := range found {
		all.WriteString(string(f.Status) + ": " + f.Message + " " + f.Advice + "\n")
		if (f.Status == OK) != (f.Advice == "") || !strings.HasSuffix(f.Message, ".") {
			t.Errorf("%q is no sentence, or doesn't say what to do", f)
		}
	}
	if worst(found) != status || !strings.Contains(all.String(), mention) {
		t.Errorf("want %s, %q; got\n%s", status, mention, all.String())
	}
}

func TestExamine(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	s.Config.Engines = []resource.Block{{Name: "llama_server", Settings: []resource.Setting{{Name: "path", Value: "/nowhere/llama-server", Source: resource.FromFile}}}}
	r := Examine(t.Context(), s)
	if r.Problems == 0 || r.Warnings == 0 || r.Running || r.Home != string(s.Home) {
		t.Errorf("%+v", r)
	}
	checked := map[string]bool{}
	for _, f := range r.Findings {
		checked[f.Check] = true
		if f.Check == "engine" && (f.Status != Problem || !strings.Contains(f.Message, "/nowhere/llama-server")) {
			t.Errorf("%+v", f)
		}
	}
	for _, name := range []string{"home", "disk", "server", "configuration", "engine", "gpu", "memory", "models", "store", "sandbox", "limits", "clock"} {
		if !checked[name] {
			t.Errorf("%s isn't checked", name)
		}
	}
}

func TestExamine_AHangingCheckIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		defer close(ended)
		found := bounded(t.Context(), nil, func(context.Context, *Subject) findings {
			<-ended
			return nil
		})
		wantFound(t, found, Warning, "took too long")
	})
}

func TestCheckHome(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil   func(*testing.T, *Subject)
		status  Status
		mention string
	}{
		"healthy":        {func(*testing.T, *Subject) {}, OK, "The home is"},
		"missing":        {func(_ *testing.T, s *Subject) { s.Home += "-no" }, OK, "doesn't exist yet"},
		"open to all":    {func(t *testing.T, s *Subject) { chmod(t, string(s.Home), 0o755) }, Warning, "chmod 700"},
		"a file":         {func(t *testing.T, s *Subject) { s.Home = home.Dir(write(t, t.TempDir(), "x", "")) }, Problem, "not a folder"},
		"too long":       {func(t *testing.T, s *Subject) { s.Home = longHome(t) }, Problem, "too long"},
		"not a folder's": {func(t *testing.T, s *Subject) { s.Home = home.Dir(write(t, t.TempDir(), "x", "") + "/y") }, Problem, "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := healthy(t)
			tt.spoil(t, s)
			wantFound(t, checkHome(t.Context(), s), tt.status, tt.mention)
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func longHome(t *testing.T) home.Dir {
	t.Helper()
	dir := home.Dir(filepath.Join(t.TempDir(), strings.Repeat("x", 100)))
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheckDisk(t *testing.T) {
	t.Parallel()
	wantFound(t, ofSpace(5e8), Problem, "500 MB")
	wantFound(t, ofSpace(5e9), Warning, "5.0 GB")
	wantFound(t, ofSpace(5e11), OK, "500 GB")
	s := healthy(t)
	s.Home += "/not/there/yet"
	if found := checkDisk(t.Context(), s); strings.Contains(found[len(found)-1].Message, "isn't known") {
		t.Errorf("%v", found)
	}
}

func TestCheckServer(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	wantFound(t, checkServer(t.Context(), s), OK, "No server is running")
	if _, err := os.Stat(s.Home.Lock()); err == nil {
		t.Error("the check made a lock")
	}
	lock := hold(t, s.Home)
	wantFound(t, checkServer(t.Context(), s), Problem, "has the home in use")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	wantFound(t, checkServer(t.Context(), s), OK, "No server is running")
}

func TestCheckConfiguration(t *testing.T) {
	t.Parallel()
	site := func(reachable, authentication, tls bool) resource.Site {
		return resource.Site{Addresses: []string{"http://:7001"}, Reachable: reachable, Authentication: authentication, TLS: tls}
	}
	for name, tt := range map[string]struct {
		sites   []resource.Site
		status  Status
		mention string
	}{
		"on this machine":     {[]resource.Site{site(false, false, false)}, OK, "is valid"},
		"open":                {[]resource.Site{site(true, false, true)}, Warning, "Put lm_auth before lm_api"},
		"unencrypted":         {[]resource.Site{site(true, true, false)}, Warning, "unencrypted"},
		"protected":           {[]resource.Site{site(true, true, true)}, OK, "is valid"},
		"no site":             {nil, Warning, "No site has lm_api"},
		"one of them is open": {[]resource.Site{site(false, false, false), site(true, false, false)}, Warning, ":7001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := healthy(t)
			s.Config.Sites = tt.sites
			wantFound(t, checkConfiguration(t.Context(), s), tt.status, tt.mention)
		})
	}
	s := healthy(t)
	s.Config.Sites, s.Config.Home = []resource.Site{site(false, false, false)}, t.TempDir()
	wantFound(t, checkConfiguration(t.Context(), s), Warning, "has the home")
	s.Config.Home = filepath.Join(string(s.Home), "..", "home")
	wantFound(t, checkConfiguration(t.Context(), s), OK, "is valid")
	s.Config, s.Error, s.File = nil, os.ErrInvalid, "/etc/Caddyfile"
	wantFound(t, checkConfiguration(t.Context(), s), Problem, "/etc/Caddyfile is not valid: invalid argument.")
	for _, c := range checks { // none needs it
		if c.name != "engine" && c.name != "gpu" {
			c.find(t.Context(), s)
		}
	}
}

func TestCheckSandbox(t *testing.T) {
	t.Parallel()
	wantFound(t, ofSandbox("landlock, ABI 7"), OK, "landlock, ABI 7")
	wantFound(t, ofSandbox("not available: the kernel has no Landlock"), Warning, "the kernel has no Landlock")
	s := healthy(t)
	s.Config.Engines = []resource.Block{{Name: "llama_server", Settings: []resource.Setting{{Name: "sandbox", Value: "off", Source: resource.FromFile}}}}
	wantFound(t, checkSandbox(t.Context(), s), Warning, "sandbox off")
}

func TestCheckClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	wantFound(t, ofClock(now, now.Add(-time.Hour)), OK, "2026-11-01")
	wantFound(t, ofClock(now, now.Add(2*time.Hour)), Warning, "went back")
	wantFound(t, ofClock(time.Unix(0, 0), time.Time{}), Problem, "is wrong")
}

func TestCheckLimits(t *testing.T) {
	t.Parallel()
	wantFound(t, ofLimits(0, 0), OK, "high enough")
	wantFound(t, ofLimits(enoughFiles, 0), OK, "high enough")
	wantFound(t, ofLimits(1024, 0), Warning, "LimitNOFILE")
	wantFound(t, ofLimits(0, 1<<30), Warning, "ulimit -v")
}
