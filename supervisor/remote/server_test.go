package remote

import (
	stdcmp "cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// shapes answers GET and POST requests by path, with status 404 for others.
func shapes(t *testing.T, answers map[string]string) *Server {
	t.Helper()
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, ok := answers[r.URL.Path]
		if !ok {
			if said, ok = answers["*"]; !ok {
				http.NotFound(w, r)
				return
			}
		}
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(far.Close)
	return serverOf(t, Config{Name: "r", URL: far.URL})
}

func serverOf(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := NewServer(c, "self")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestDiscover_OfEachKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers map[string]string
		kind    string
		version string
		models  []Model
	}{
		"vLLM": {
			map[string]string{
				"/v1/models": `{"object":"list","data":[{"id":"Qwen/Qwen3-4B","object":"model","created":1700000000,"owned_by":"vllm","root":"Qwen/Qwen3-4B","max_model_len":4096,"permission":[]}]}`,
				"/version":   `{"version":"0.25.2"}`,
			},
			KindVLLM, "0.25.2",
			[]Model{{ID: "Qwen/Qwen3-4B", Loaded: true, Context: 4096, Model: catalog.Model{Key: "qwen/qwen3-4b", Publisher: "qwen", DisplayName: "qwen3-4b", Type: catalog.TypeLLM, MaxContextLength: 4096, ToolUse: true, IsRemote: true}}},
		},
		"SGLang": {
			map[string]string{"/v1/models": `{"object":"list","data":[{"id":"/models/meta/Llama-3","owned_by":"sglang","max_model_len":8192}]}`},
			KindSGLang, "",
			[]Model{{ID: "/models/meta/Llama-3", Loaded: true, Context: 8192, Model: catalog.Model{Key: "meta/llama-3", Publisher: "meta", DisplayName: "llama-3", Type: catalog.TypeLLM, MaxContextLength: 8192, ToolUse: true, IsRemote: true}}},
		},
		"llama-server": {
			map[string]string{
				"/v1/models": `{"models":[],"object":"list","data":[{"id":"tinychat-f16.gguf","owned_by":"llamacpp","meta":{"n_ctx":512,"n_ctx_train":8192,"n_params":1900000,"size":3800000}}]}`,
				"/props":     `{"total_slots":3,"modalities":{"vision":true,"audio":true},"chat_template_caps":{"supports_tools":true},"build_info":"b11669"}`,
			},
			KindLlamaServer, "b11669",
			[]Model{{ID: "tinychat-f16.gguf", Loaded: true, Context: 512, Slots: 3, Model: catalog.Model{Key: "tinychat-f16", Publisher: "r", DisplayName: "tinychat-f16", Type: catalog.TypeLLM, MaxContextLength: 8192, SizeBytes: 3800000, Parameters: 1900000, ToolUse: true, Vision: true, Audio: true, IsRemote: true}}},
		},
		"LM Studio, which has status 200 for everything": {
			map[string]string{
				"/api/v1/models": `{"models":[{"type":"embedding","publisher":"nomic","key":"text-embedding-nomic","display_name":"Nomic","quantization":null,"size_bytes":5,"params_string":null,"loaded_instances":[],"max_context_length":2048,"format":"gguf"},{"type":"llm","publisher":"qwen","key":"qwen/qwen3-4b","display_name":"Qwen3","quantization":{"name":"Q4_K_M","bits_per_weight":4},"size_bytes":9,"params_string":"4B","loaded_instances":[{"id":"qwen/qwen3-4b","config":{"context_length":4096}}],"max_context_length":32768,"format":"gguf","capabilities":{"vision":true,"audio":true,"trained_for_tool_use":true,"reasoning":{"allowed_options":["off","on"],"default":"on"}}}]}`,
				"*":              `{"error":"Unexpected endpoint or method."}`,
			},
			KindLMStudio, "",
			[]Model{
				{ID: "qwen/qwen3-4b", Loaded: true, Context: 4096, Instances: []string{"qwen/qwen3-4b"}, Model: catalog.Model{Key: "qwen/qwen3-4b", Publisher: "qwen", DisplayName: "Qwen3", Type: catalog.TypeLLM, Quantization: catalog.Quantization{Name: "Q4_K_M", BitsPerWeight: 4}, SizeBytes: 9, SizeLabel: "4B", MaxContextLength: 32768, Format: "gguf", Vision: true, Audio: true, ToolUse: true, Reasoning: catalog.Reasoning{Options: []string{"off", "on"}, Default: "on"}, IsRemote: true}},
				{ID: "text-embedding-nomic", Model: catalog.Model{Key: "text-embedding-nomic", Publisher: "nomic", DisplayName: "Nomic", Type: catalog.TypeEmbedding, SizeBytes: 5, MaxContextLength: 2048, Format: "gguf", IsRemote: true}},
			},
		},
		"Ollama": {
			map[string]string{
				"/v1/models":   `{"object":"list","data":[{"id":"qwen3:4b","object":"model","created":1700000000,"owned_by":"library"}]}`,
				"/api/version": `{"version":"0.20.1"}`,
				"/api/tags":    `{"models":[{"name":"qwen3:4b","size":7,"details":{"format":"gguf","family":"qwen3","parameter_size":"4B","quantization_level":"Q4_K_M"}}]}`,
				"/api/ps":      `{"models":[{"name":"qwen3:4b","context_length":4096}]}`,
				"/api/show":    `{"capabilities":["completion","tools","vision","audio"],"model_info":{"qwen3.context_length":40960}}`,
			},
			KindOllama, "0.20.1",
			[]Model{{ID: "qwen3:4b", Loaded: true, Context: 4096, Model: catalog.Model{Key: "qwen3:4b", Publisher: "r", DisplayName: "qwen3:4b", Type: catalog.TypeLLM, Architecture: "qwen3", Quantization: catalog.Quantization{Name: "Q4_K_M"}, SizeBytes: 7, SizeLabel: "4B", MaxContextLength: 40960, Format: "gguf", ToolUse: true, Vision: true, Audio: true, IsRemote: true}}},
		},
		"another": {
			map[string]string{"/v1/models": `{"data":[{"id":"gpt-oss"},{"id":"bge-embed-large"}]}`},
			KindOpenAI, "",
			[]Model{
				{ID: "bge-embed-large", Loaded: true, Model: catalog.Model{Key: "bge-embed-large", Publisher: "r", DisplayName: "bge-embed-large", Type: catalog.TypeEmbedding, ToolUse: true, IsRemote: true}},
				{ID: "gpt-oss", Loaded: true, Model: catalog.Model{Key: "gpt-oss", Publisher: "r", DisplayName: "gpt-oss", Type: catalog.TypeLLM, ToolUse: true, IsRemote: true}},
			},
		},
	} {
		found, err := shapes(t, tt.answers).Discover(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found.Kind != tt.kind || found.Version != tt.version {
			t.Errorf("%s: it is taken for %s %s", name, found.Kind, found.Version)
		}
		for i := range found.Models {
			found.Models[i].Changed = tt.models[min(i, len(tt.models)-1)].Changed
		}
		if diff := cmp.Diff(tt.models, found.Models); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDiscover_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	plain, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	old := expired(t)
	aborts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	redirects := httptest.NewServer(http.RedirectHandler("https://127.0.0.1", http.StatusMovedPermanently))
	for _, s := range []*httptest.Server{plain, secure, aborts, redirects} {
		t.Cleanup(s.Close)
	}
	for name, tt := range map[string]struct {
		server *Server
		want   string
	}{
		"nobody listens":    {serverOf(t, Config{URL: "http://" + closedport.Address(t)}), "connection refused"},
		"no such host":      {serverOf(t, Config{URL: "http://no-such-host.invalid"}), "its host name can't be resolved"},
		"another program":   {shapes(t, map[string]string{"/v1/models": "<html>"}), "isn't JSON"},
		"nothing of a kind": {shapes(t, nil), "status 404"},
		"HTTPS is expected": {serverOf(t, Config{URL: "http" + strings.TrimPrefix(secure.URL, "https")}), "its URL must begin with https://"},
		"HTTP is expected":  {serverOf(t, Config{URL: "https" + strings.TrimPrefix(plain.URL, "http")}), "its URL must begin with http://"},
		"unknown authority": {serverOf(t, Config{URL: secure.URL}), "give the option tls_ca or tls_pin"},
		"another name":      {serverOf(t, Config{URL: strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), CA: authority(t, secure)}), "for another name than the one in its URL"},
		"expired":           {serverOf(t, Config{URL: old.URL, CA: authority(t, old)}), "its certificate has expired"},
		"another pin":       {serverOf(t, Config{URL: secure.URL, Pin: strings.Repeat("00", 32)}), "its certificate isn't the one of tls_pin: its SHA-256 is "},
		"a reset":           {serverOf(t, Config{URL: "http://" + resets(t)}), "connection reset by peer"},
		"no answer":         {serverOf(t, Config{URL: aborts.URL}), "it ends the connection before its answer is complete"},
		"no HTTP":           {serverOf(t, Config{URL: "http://" + speaks(t, "SSH-2.0-OpenSSH_9.2\r\n")}), "it doesn't speak HTTP"},
		"a redirect":        {serverOf(t, Config{URL: redirects.URL}), "it redirects to another address (status 301)"},
	} {
		_, err := tt.server.Discover(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want that %s", name, err, tt.want)
		}
	}
}

// authority writes the certificate of a server as that of an authority, and returns the file.
func authority(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// expired starts a server whose certificate has expired.
func expired(t *testing.T) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, &made, &made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// speaks listens, and sends the same to all who connect.
func speaks(t *testing.T, text string) (address string) {
	t.Helper()
	return listens(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1<<10))
		_, _ = io.WriteString(conn, text)
	})
}

// resets listens, and resets every connection.
func resets(t *testing.T) (address string) {
	t.Helper()
	return listens(t, func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.SetLinger(0)
	})
}

func listens(t *testing.T, serve func(*net.TCPConn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn.(*net.TCPConn))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestConfig_ChoosesAndDescribes(t *testing.T) {
	t.Parallel()
	s := shapes(t, map[string]string{"/v1/models": `{"data":[{"id":"Qwen/Qwen3-VL"},{"id":"meta/llama"},{"id":"BAAI/bge-m3"},{"id":"BAAI/bge-reranker"}]}`})
	s.config.Models, s.config.Vision = []string{"qwen/*", "baai/*"}, []string{"*-vl"}
	s.config.Embeddings, s.config.Rerankers, s.config.ContextLength = []string{"bge-*"}, []string{"*reranker*"}, 1000
	found, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range found.Models {
		said := string(m.Type)
		if m.Vision {
			said += " vision"
		}
		if m.Reranker {
			said += " reranker"
		}
		if m.Context != 1000 {
			said += " without a context"
		}
		got[m.Key] = said
	}
	want := map[string]string{"qwen/qwen3-vl": "llm vision", "baai/bge-m3": "embedding", "baai/bge-reranker": "embedding reranker"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeyOf(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"Qwen/Qwen3-4B": "qwen/qwen3-4b", "qwen3:4b": "qwen3:4b", "/data/models/Org/Name": "org/name", "C:\\models\\Org\\Name": "org/name",
		"unsloth/Qwen3-GGUF": "unsloth/qwen3", "/m/tiny-f16.gguf": "tiny-f16", "/": "",
	} {
		if got := KeyOf(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
}

func TestServer_SendsNothingElse(t *testing.T) {
	var got http.Header
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }))
	t.Cleanup(far.Close)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	resp, err := serverOf(t, Config{URL: far.URL + "/v1/", Key: "k"}).Post(supervisor.WithVia(t.Context(), []string{"first"}), "/v1/chat/completions", supervisor.Payload{Pieces: [][]byte{[]byte("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	want := http.Header{"Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer k"}, "Content-Length": {"2"}, "Content-Type": {"application/json"}, "User-Agent": {"lmcaddy"}, "Via": {"1.1 lmcaddy-first, 1.1 lmcaddy-self"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the header (-want +got):\n%s", diff)
	}
}

func TestServer_FollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect is followed") }))
	t.Cleanup(other.Close)
	far := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(far.Close)
	s := serverOf(t, Config{URL: far.URL, Key: "k"})
	var status *statusError
	if _, err := s.Discover(t.Context()); !errors.As(err, &status) || status.status != http.StatusTemporaryRedirect {
		t.Errorf("discovery: %v", err)
	}
	resp, err := s.Post(t.Context(), "/v1/chat/completions", supervisor.Payload{})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("the status is %d", resp.StatusCode)
	}
}

func TestServer_Certificates(t *testing.T) {
	t.Parallel()
	far := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the protocol is %s", r.Proto)
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	}))
	far.EnableHTTP2 = true
	far.StartTLS()
	t.Cleanup(far.Close)
	raw := far.Certificate().Raw
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	for name, tt := range map[string]struct {
		config Config
		works  bool
	}{
		"the system's authorities": {Config{}, false},
		"its own authority":        {Config{CA: authority}, true},
		"its pin":                  {Config{Pin: hex.EncodeToString(sum[:])}, true},
		"another pin":              {Config{Pin: strings.Repeat("00", 32)}, false},
	} {
		tt.config.URL, tt.config.Kind = far.URL, KindOpenAI
		if err := tt.config.Validate(); err != nil {
			t.Fatal(err)
		}
		if _, err := serverOf(t, tt.config).Discover(t.Context()); (err == nil) != tt.works {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewServer(Config{URL: far.URL, CA: authority + "x"}, "self"); err == nil {
		t.Error("a file that isn't there is accepted")
	}
}

func TestWatch_NoticesAnEndAndAReturn(t *testing.T) {
	t.Parallel()
	address := closedport.Address(t)
	far := serveAt(t, address)
	states := make(chan State, 64)
	w := NewWatch(serverOf(t, Config{Name: "r", URL: far.URL}), func(s State) { states <- s })
	t.Cleanup(w.Close)
	if s := <-states; s.Away != "" || len(s.Models) != 1 {
		t.Fatalf("at first: %+v", s)
	}
	far.CloseClientConnections()
	far.Close()
	w.Recheck()
	if s := <-states; s.Away == "" || len(s.Models) != 1 {
		t.Fatalf("after its end: %+v", s)
	}
	t.Cleanup(serveAt(t, address).Close)
	for s := range states {
		if s.Away == "" {
			return
		}
	}
}

// serveAt starts a server with one model at an address.
func serveAt(t *testing.T, address string) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	return server
}

func TestConfig_RefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"no scheme":        {Config{URL: "gpu1:8000"}, "must begin with http:// or https://"},
		"a password":       {Config{URL: "http://a:secret@gpu1"}, "use the option key"},
		"a port":           {Config{URL: "http://gpu1:99999"}, "99999 isn't a number from 1 to 65535"},
		"a control byte":   {Config{Name: "a\x1b"}, "it must have no slash"},
		"a placeholder":    {Config{Name: "{env.NAME}"}, "brace"},
		"a key of 2 lines": {Config{Key: "secret\nline"}, "key: it must have no line break"},
		"an empty pattern": {Config{Models: []string{""}}, "is not a pattern"},
		"parallel":         {Config{Parallel: MaxParallel + 1}, "it must be at most 100000"},
		"context_length":   {Config{ContextLength: maxContext + 1}, "it must be at most"},
	} {
		tt.config.URL = stdcmp.Or(tt.config.URL, "http://gpu1")
		err := tt.config.Validate()
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
