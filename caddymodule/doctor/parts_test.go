package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

func hold(t *testing.T, dir home.Dir) *node.Lock {
	t.Helper()
	lock, err := node.Reserve(dir)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func withEngine(s *Subject, path string) {
	s.Config.Engines = []resource.Block{{Name: "llama_server", Settings: []resource.Setting{{Name: "path", Value: path, Source: resource.FromFile}}}}
}

func TestCheckEngines(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	fake := fakeengine.Install(t, nil)
	withEngine(s, fake.Path)
	wantFound(t, checkEngines(t.Context(), s), OK, "llama.cpp")
	old := time.Now().Add(-400 * 24 * time.Hour)
	script := write(t, t.TempDir(), "llama-server", "#!/bin/sh\nexec '"+fake.Path+"' \"$@\"\n")
	chmod(t, script, 0o700)
	if err := os.Chtimes(script, old, old); err != nil {
		t.Fatal(err)
	}
	withEngine(s, script)
	wantFound(t, checkEngines(t.Context(), s), Warning, "13 months old")
	broken := write(t, t.TempDir(), "llama-server", "#!/bin/sh\necho 'error while loading shared libraries: libgomp.so.1' >&2\nexit 127\n")
	chmod(t, broken, 0o700)
	withEngine(s, broken)
	wantFound(t, checkEngines(t.Context(), s), Problem, "A library that it needs is missing")
	foreign := write(t, t.TempDir(), "llama-server", "\x7fELF\x02\x01\x01"+strings.Repeat("\x00", 500))
	chmod(t, foreign, 0o700)
	withEngine(s, foreign)
	wantFound(t, checkEngines(t.Context(), s), Problem, "built for another processor")
	withEngine(s, "/nowhere/llama-server")
	wantFound(t, checkEngines(t.Context(), s), Problem, "lmcaddy runtime get llama.cpp")
}

// An engine that hangs is a problem, and doesn't keep the report.
func TestCheckEngines_Hanging(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	s.enginePatience = 100 * time.Millisecond
	hanging := write(t, t.TempDir(), "llama-server", "#!/bin/sh\nexec sleep 1000\n")
	chmod(t, hanging, 0o700)
	withEngine(s, hanging)
	wantFound(t, checkEngines(t.Context(), s), Problem, "it doesn't even tell its version")
}

// Something that has the socket and says nothing is no server, and is said to be there.
func TestCheckServer_Silent(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	s.IsSilent = true
	wantFound(t, checkServer(t.Context(), s), Problem, "accepts connections on")
}

func TestCheckConfiguration_Unreadable(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	s.Config, s.File, s.Error = nil, "/x/Caddyfile", &os.PathError{Op: "open", Path: "/x/Caddyfile", Err: os.ErrNotExist}
	wantFound(t, checkConfiguration(t.Context(), s), Problem, "can't be read")
}

// TestCheckHome_AVolume of a container belongs to root, whoever lmcaddy runs as there. Not parallel: it makes this a container.
func TestCheckHome_AVolume(t *testing.T) {
	s := healthy(t)
	if os.Geteuid() == 0 {
		chmod(t, string(s.Home), 0o777)
		if err := os.Chown(string(s.Home), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	} else {
		s.Home = "/usr" // of root, in which nothing can be written
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for _, f := range checkHome(t.Context(), s) {
		if f.Status != OK && !strings.Contains(f.Message, "Nothing can be written") {
			t.Errorf("%+v", f)
		}
	}
}

func TestCheckGPU_Files(t *testing.T) {
	t.Parallel()
	dev := t.TempDir()
	write(t, dev, "dri/renderD128", "")
	write(t, dev, "dri/card0", "")
	files, found := tryFiles(dev)
	if len(files) != 1 || found != nil {
		t.Errorf("%v, %v", files, found)
	}
	chmod(t, filepath.Join(dev, "dri", "renderD128"), 0)
	if os.Geteuid() == 0 {
		return // root may open it nevertheless
	}
	_, found = tryFiles(dev)
	wantFound(t, found, Problem, "renderD128")
}

func TestCheckGPU_Variants(t *testing.T) {
	t.Parallel()
	cpu, gpu := runtimes.Hardware{Variants: []string{"cpu"}}, runtimes.Hardware{Variants: []string{"cuda", "vulkan", "cpu"}}
	none, some := process.Build{Devices: []process.Device{}}, process.Build{Devices: []process.Device{{Name: "RTX", Memory: 24e9}}}
	for name, tt := range map[string]struct {
		hardware runtimes.Hardware
		variant  string
		build    process.Build
		status   Status
		mention  string
	}{
		"used":                {gpu, "cuda", some, OK, "RTX (24 GB)"},
		"not used":            {gpu, "cpu", none, Warning, "--variant cuda"},
		"not found":           {gpu, "cuda", none, Problem, "finds none"},
		"of an unknown build": {gpu, "", none, Warning, "doesn't find it"},
		"without a driver":    {cpu, "cpu", none, OK, "no driver"},
		"not told":            {gpu, "cuda", process.Build{}, OK, "doesn't tell"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFound(t, ofVariant(tt.hardware, runtimes.Runtime{Name: "llama.cpp-b1", Path: "/x", Variant: tt.variant}, tt.build), tt.status, tt.mention)
		})
	}
	s := healthy(t)
	s.hardware = &runtimes.Hardware{Variants: []string{"cpu"}, DriverFails: true}
	write(t, s.dev, "nvidia0", "")
	wantFound(t, checkGPU(t.Context(), s), Problem, "nvidia-smi fails")
}

func TestCheckMemory(t *testing.T) {
	t.Parallel()
	models := []model{{key: "a/small", size: 1e9}, {key: "a/fits", size: 3e9}, {key: "a/large", size: 9e9}, {key: "a/broken", size: 35e8, problem: "cut off"}}
	wantFound(t, ofSizes(4e9, models), Warning, "a/large (9.0 GB)")
	wantFound(t, ofSizes(4e9, models), Warning, "The largest that fits is a/fits")
	wantFound(t, ofSizes(4e10, models), OK, "a/large")
	wantFound(t, ofSizes(4e9, nil), OK, "4.0 GB")
	s := healthy(t)
	s.Config.Settings = []resource.Setting{{Name: "memory_budget", Value: "900TB"}}
	wantFound(t, checkMemory(t.Context(), s), Warning, "Lower memory_budget")
}

const shipped = "../../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf"

func TestCheckModels(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	wantFound(t, checkModels(t.Context(), s), Warning, "no model")
	content, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.Home.Models(), "a/good/good.gguf", string(content))
	wantFound(t, checkModels(t.Context(), s), OK, "1 model can be used")
	write(t, s.Home.Models(), "a/cut/cut.gguf", string(content[:len(content)/2]))
	wantFound(t, checkModels(t.Context(), s), Problem, "a/cut can't be used")
	s = healthy(t)
	s.Config.ModelsDirs = []string{"/nowhere/models"}
	wantFound(t, checkModels(t.Context(), s), Problem, "/nowhere/models can't be read")
	s.Config.ModelsDirs = []string{write(t, t.TempDir(), "x", "")}
	wantFound(t, checkModels(t.Context(), s), Problem, "can't be read")
}

func TestCheckStore(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	wantFound(t, checkStore(t.Context(), s), OK, "Nothing is stored")
	opened, err := store.Open(t.Context(), store.Options{Path: s.Home.Database(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	wantFound(t, checkStore(t.Context(), s), OK, "is intact") // while it is open
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	wantFound(t, checkStore(t.Context(), s), OK, "is intact")
	chmod(t, s.Home.Database(), 0o644)
	wantFound(t, checkStore(t.Context(), s), Warning, "chmod 600")
	spoil(t, s.Home.Database())
	wantFound(t, checkStore(t.Context(), s), Problem, "damaged")
	s.Config.Settings = []resource.Setting{{Name: "store", Value: "postgres postgres://lm@127.0.0.1:1/lm"}}
	s.Config.PostgresURL = "postgres://lm@127.0.0.1:1/lm?connect_timeout=2"
	wantFound(t, checkStore(t.Context(), s), Problem, "PostgreSQL")
}

// spoil overwrites the pages of a database after the first.
func spoil(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("spoilt", int(size-4096)/6)), 4096)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCheckTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expires := func(in time.Duration) []resource.Token {
		return []resource.Token{{ID: "abcdefgh", Name: "laptop", Expires: resource.At(now.Add(in))}, {ID: "x"}}
	}
	wantFound(t, ofTokens(expires(-time.Hour), now), Warning, "abcdefgh (laptop) has expired")
	wantFound(t, ofTokens(expires(time.Hour), now), Warning, "abcdefgh (laptop) expires on")
	wantFound(t, ofTokens(expires(999*time.Hour), now), OK, "2 tokens exist")
	wantFound(t, ofTokens(nil, now), OK, "no tokens")
	s := healthy(t)
	s.Tokens = func(context.Context) ([]resource.Token, error) { return nil, errors.New("no") }
	wantFound(t, checkTokens(t.Context(), s), Warning, "can't be listed")
}

func TestCheckPorts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	s := healthy(t)
	s.Config.Sites = []resource.Site{{Addresses: []string{"http://" + at, "unix//x.sock"}}}
	wantFound(t, checkPorts(t.Context(), s), Problem, at+" is in use by ")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Config.Sites = []resource.Site{{Addresses: []string{"http://192.0.2.1:7001"}}}
	wantFound(t, checkPorts(t.Context(), s), Problem, "must be one of this machine's")
	s.Config.Sites = []resource.Site{{Addresses: []string{"http://127.0.0.1:0"}}}
	wantFound(t, checkPorts(t.Context(), s), OK, "Nothing else listens")
}

func TestCheckCertificate(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	if found := checkCertificate(t.Context(), s); found != nil {
		t.Errorf("%v", found)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	trusting, empty := x509.NewCertPool(), x509.NewCertPool()
	trusting.AppendCertsFromPEM(content)
	for name, tt := range map[string]struct {
		content []byte
		now     time.Time
		trusted *x509.CertPool
		status  Status
		mention string
	}{
		"trusted":     {content, now, trusting, OK, "trusts"},
		"not trusted": {content, now, empty, Warning, "lmcaddy trust"},
		"expired":     {content, now.AddDate(2, 0, 0), trusting, Problem, "expired on 2027-06-01"},
		"expires":     {content, now.AddDate(1, 0, -3), trusting, Warning, "expires on 2027-06-01"},
		"not yet":     {content, now.AddDate(-2, 0, 0), trusting, Problem, "clock"},
		"no PEM":      {[]byte("x"), now, trusting, Problem, "is no certificate"},
		"nonsense":    {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), now, trusting, Problem, "is no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFound(t, ofRoot("/x/root.crt", tt.content, tt.now, tt.trusted), tt.status, tt.mention)
		})
	}
	write(t, string(s.Home), "caddy/pki/authorities/local/root.crt", "x")
	wantFound(t, checkCertificate(t.Context(), s), Problem, "is no certificate")
}
