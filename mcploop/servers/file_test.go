package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "mcp.json")
	if configs, err := Read(file); configs != nil || err != nil {
		t.Errorf("without a file there are %v, %v", configs, err)
	}
	content := "\ufeff" + `{"inputs": [], "mcpServers": {
		"web": {"url": "https://example.com/mcp?key=1", "headers": {"Authorization": "Bearer x", "accept": "*/*"}, "type": "streamableHttp"},
		"files": {"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "cwd": "sub", "disabled": false},
		"old": {"url": "http://localhost:1/sse", "type": "sse"},
		"plain": {"type": "stdio", "command": "/bin/server"}
	}}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []Config{
		{Label: "files", Command: "npx", Args: []string{"-y", "server"}, Env: map[string]string{"A": "b"}, Dir: filepath.Join(folder, "sub")},
		{Label: "old", URL: "http://localhost:1/sse", Dir: folder, Type: "sse", Headers: map[string]string{}},
		{Label: "plain", Command: "/bin/server", Dir: folder},
		{Label: "web", URL: "https://example.com/mcp?key=1", Dir: folder, Type: "http", Headers: map[string]string{"Authorization": "Bearer x"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRead_WrongEntriesLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ entry, want string }{
		"no object":       {`3`, "it must be an object"},
		"nothing":         {`{}`, "it needs a command or a url"},
		"both":            {`{"command": "a", "url": "http://b"}`, "leave one of them out"},
		"command":         {`{"command": 1}`, `"command" must be a string`},
		"args":            {`{"command": "a", "args": "b"}`, `"args" must be an array of strings`},
		"arg":             {`{"command": "a", "args": [1]}`, `"args" must have strings only`},
		"env":             {`{"command": "a", "env": {"SECRET": 12345}}`, `"env" must have strings only`},
		"a variable":      {`{"command": "a", "env": {"A=B": "c"}}`, `"A=B" that can't be set`},
		"type":            {`{"url": "http://a", "type": "websocket"}`, `type "websocket" is not known`},
		"type of command": {`{"command": "a", "type": "sse"}`, `not for a server with a command`},
		"type of url":     {`{"url": "http://a", "type": "stdio"}`, `not for a server with a url`},
		"scheme":          {`{"url": "ftp://a/?secret"}`, "must look like https://host/path"},
		"header":          {`{"url": "http://a", "headers": {"Host": "secret"}}`, `the header "Host" can't be set`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(file, []byte(`{"mcpServers": {"bad one": `+test.entry+`, "good": {"command": "a"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(file)
			if err != nil || len(got) != 2 || got[1].Err != nil {
				t.Fatalf("got %v, %v", got, err)
			}
			text := got[0].Err.Error()
			if !strings.Contains(text, test.want) || !strings.Contains(text, `"bad one"`) || strings.Contains(text, "secret") || strings.Contains(text, "12345") {
				t.Errorf("the error is %q, want one with %q", text, test.want)
			}
		})
	}
	for name, content := range map[string]string{"syntax": `{"mcpServers": {`, "list": `{"mcpServers": []}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(file); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestKebab(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"files": "files", "My Server": "my-server", "myServer": "my-server", "a_b.c": "a-b-c", " x ": "x", "GitHub": "git-hub", "HTTP2": "http2", "ÄÖ": "äö",
	} {
		if got := kebab(name); got != want {
			t.Errorf("kebab(%q) is %q, want %q", name, got, want)
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Host", "content-length", "Transfer-Encoding", "CONNECTION", "Upgrade", "TE", "Trailer", "Proxy-Authorization", "mcp-session-id",
		"Accept", "Content-Type", "Accept-Encoding", "a b", "", "a\nb", "ä",
	} {
		if err := checkHeaders(map[string]string{name: "secret"}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := checkHeaders(map[string]string{"X-Key": "secret\nHost: other"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if err := checkHeaders(map[string]string{"Authorization": "Bearer x", "X-Api-Key": "y"}); err != nil {
		t.Error(err)
	}
}
