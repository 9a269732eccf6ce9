package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// Get requests a path of an engine that listens on a Unix socket, past lmcaddy.
func (p Process) Get(t testing.TB, path string) string {
	t.Helper()
	at := slices.Index(p.Args, "--host") + 1
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
	if err != nil || at == 0 || at == len(p.Args) {
		t.Fatalf("the engine's address and key: %v", err)
	}
	key := ""
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if value, ok := strings.CutPrefix(string(variable), "LLAMA_API_KEY="); ok {
			key = value
		}
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.Args[at])
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://engine"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the engine's %s: %s %s %v", path, resp.Status, body, err)
	}
	return string(body)
}
