package fakehub_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

func get(t *testing.T, address string, header ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body), response.Header
}

func command(t *testing.T, hub, name, body string) {
	t.Helper()
	response, err := http.Post(hub+"/_hub/"+name, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s: %d %s", name, response.StatusCode, text)
	}
}

func TestRandom_IsTheSameHoweverItIsRead(t *testing.T) {
	t.Parallel()
	whole := make([]byte, 10_001)
	r := fakehub.Random(5, int64(len(whole)))
	if _, err := r.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(io.NewSectionReader(r, 0, r.Size()), whole); err != nil {
		t.Error(err)
	}
	if bytes.Equal(whole[:100], whole[100:200]) {
		t.Error("it doesn't look random")
	}
}

func TestHub_SpeaksTheAPI(t *testing.T) {
	t.Parallel()
	hub := fakehub.Start(t)
	hub.PageSize(1)
	hub.Add("a/b", fakehub.Files{"x.gguf": fakehub.Text("0123456789"), "README.md": fakehub.Text("hello\n")})
	_, body, _ := get(t, hub.URL+"/api/models/a/b")
	var info struct{ ID, SHA string }
	if err := json.Unmarshal([]byte(body), &info); err != nil || info.ID != "a/b" || len(info.SHA) != 40 {
		t.Errorf("%s, %v", body, err)
	}
	_, body, header := get(t, hub.URL+"/api/models/a/b/tree/"+info.SHA+"?recursive=true")
	// what git says of "hello\n"
	if !strings.Contains(body, `"oid":"ce013625030ba8dba906f756967f9e9ca394464a"`) || strings.Contains(body, "x.gguf") {
		t.Error(body)
	}
	next, _, _ := strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	if _, body, header = get(t, next); !strings.Contains(body, `"oid":"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"`) || header.Get("Link") != "" {
		t.Errorf("%s, %v", body, header)
	}
	code, body, header := get(t, hub.URL+"/a/b/resolve/main/x.gguf", "Range", "bytes=3-5")
	if code != http.StatusPartialContent || body != "345" || header.Get("Content-Range") != "bytes 3-5/10" {
		t.Errorf("%d %q %v", code, body, header)
	}
	if code, body, _ = get(t, hub.URL+"/a/b/resolve/main/x.gguf", "Range", "bytes=3-5", "If-Range", `"other"`); code != http.StatusOK || body != "0123456789" {
		t.Errorf("%d %q", code, body)
	}
	for _, path := range []string{"/api/models/a/c", "/a/b/resolve/main/y", "/a/b/resolve/v9/x.gguf", "/api/models/a/b/tree/v9", "/x"} {
		if code, _, _ := get(t, hub.URL+path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// TestHub_IsCommandedOverHTTP, as it is where it runs as a process of its own.
func TestHub_IsCommandedOverHTTP(t *testing.T) {
	t.Parallel()
	hub := fakehub.Start(t)
	onDisk := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(onDisk, []byte("from the disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"repo": "a/b", "random": map[string]int{"r.gguf": 100}, "text": map[string]string{"t": "text"}, "disk": map[string]string{"d.gguf": onDisk}})
	if err != nil {
		t.Fatal(err)
	}
	command(t, hub.URL, "add", string(text))
	if _, body, _ := get(t, hub.URL+"/a/b/resolve/main/d.gguf"); body != "from the disk" {
		t.Errorf("%q", body)
	}
	command(t, hub.URL, "fault", `{"path": "d.gguf", "status": 429, "header": {"Retry-After": "3"}, "times": 1}`)
	if code, _, header := get(t, hub.URL+"/a/b/resolve/main/d.gguf"); code != http.StatusTooManyRequests || header.Get("Retry-After") != "3" {
		t.Errorf("%d", code)
	}
	command(t, hub.URL, "lie", `{"repo": "a/b", "path": "d.gguf", "size": 5}`)
	if _, body, _ := get(t, hub.URL+"/api/models/a/b/tree/main"); !strings.Contains(body, `"size":5`) {
		t.Error(body)
	}
	if _, body, _ := get(t, hub.URL+"/_hub/sum?repo=a/b&path=t"); !strings.Contains(body, "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1") {
		t.Error(body)
	}
	if _, body, _ := get(t, hub.URL+"/_hub/requests"); strings.Count(body, `"path":"/cdn/a/b/d.gguf"`) != 1 {
		t.Error(body)
	}
	command(t, hub.URL, "tokens", `["secret"]`)
	if code, _, _ := get(t, hub.URL+"/api/models/a/b"); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	if code, _, _ := get(t, hub.URL+"/api/models/a/b", "Authorization", "Bearer secret"); code != http.StatusOK {
		t.Errorf("with the token: %d", code)
	}
	command(t, hub.URL, "mend", "")
	command(t, hub.URL, "forget", "")
	command(t, hub.URL, "cut", "")
}

func TestHub_KillAndRevive(t *testing.T) {
	t.Parallel()
	hub := fakehub.Start(t)
	hub.Add("a/b", fakehub.Files{"x.gguf": fakehub.Text("x")})
	hub.Kill()
	if _, err := http.Get(hub.URL); err == nil {
		t.Error("it answers")
	}
	if err := hub.Revive(); err != nil {
		t.Fatal(err)
	}
	if code, body, _ := get(t, hub.URL+"/a/b/resolve/main/x.gguf"); code != http.StatusOK || body != "x" {
		t.Errorf("%d %q", code, body)
	}
}

// changing is a file that is replaced while it is sent: the server asks for its size.
type changing struct {
	fakehub.Content
	change func()
}

func (c *changing) Size() int64 {
	if c.change != nil {
		c.change()
	}
	return c.Content.Size()
}

func TestReplace_WhileTheFileIsSent(t *testing.T) {
	t.Parallel()
	hub := fakehub.Start(t)
	file := &changing{Content: fakehub.Text("old")}
	hub.Add("a/b", fakehub.Files{"x.txt": file})
	file.change = func() { hub.Replace("a/b", "x.txt", fakehub.Text("new")) }
	for _, want := range []string{"old", "new"} {
		if _, body, _ := get(t, hub.URL+"/a/b/resolve/main/x.txt"); body != want {
			t.Errorf("it sent %q, want %q", body, want)
		}
	}
}

func TestHub_Search(t *testing.T) {
	t.Parallel()
	hub := fakehub.Start(t)
	hub.Add("acme/One-GGUF", fakehub.Files{"x.gguf": fakehub.Text("x")})
	hub.Add("acme/two-GGUF", fakehub.Files{"x.gguf": fakehub.Text("x")})
	hub.Add("acme/one-mlx", fakehub.Files{"model.safetensors": fakehub.Text("x")})
	command(t, hub.URL, "describe", `{"repo":"acme/two-gguf","card":{"downloads":5,"likes":2,"gated":"manual","pipeline_tag":"text-generation","tags":["license:mit"]}}`)
	command(t, hub.URL, "describe", `{"repo":"acme/one-mlx","card":{"tags":["mlx"]}}`)
	for query, want := range map[string]string{
		"":                        "acme/two-GGUF acme/One-GGUF acme/one-mlx",
		"?search=ONE":             "acme/One-GGUF acme/one-mlx",
		"?search=gguf+acme%2Fone": "acme/One-GGUF",
		"?search=one&filter=mlx":  "acme/one-mlx",
		"?filter=gguf&limit=1":    "acme/two-GGUF",
		"?search=three":           "",
	} {
		code, body, _ := get(t, hub.URL+"/api/models"+query)
		var list []struct{ ID string }
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, code, body)
		}
		var ids []string
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	_, body, _ := get(t, hub.URL+"/api/models?search=two&expand[]=gated&expand[]=tags&expand%5B%5D=likes")
	if !strings.Contains(body, `"gated":"manual"`) || !strings.Contains(body, `"tags":["gguf","license:mit"]`) || !strings.Contains(body, `"likes":2`) || strings.Contains(body, "downloads") {
		t.Error(body)
	}
	if code, _, _ := get(t, hub.URL+"/api/models?sort=likes"); code != http.StatusBadRequest {
		t.Errorf("another order: %d", code)
	}
}
