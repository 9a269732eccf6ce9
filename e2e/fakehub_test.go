package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// hub is the tests' model hub, a process of its own. It serves <publisher>/<repository>/<files> of its folder and what the
// test adds, and records its requests.
type hub struct {
	t       testing.TB
	URL     string
	dir     string
	record  string
	fault   string // in force from the start
	listen  string
	process *exec.Cmd
	input   io.Closer
}

// hubFault is a fault, in the words of internal/testing/fakehub.
type hubFault map[string]any

// hubToken is the token for hubs in tests.
const hubToken = "hf_SecretOfTheTests"

// hubBinary builds the hub, once.
var hubBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakehub")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fakehub")
	cmd := exec.Command("go", "build", "-o", path, "./tools/fakehub")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the hub: %w\n%s", err, out)
	}
	return path, nil
})

// newHub runs a hub with the shipped model as acme/Tiny-GGUF. slow is the rate of each connection in bytes per second; 0
// means unlimited.
func newHub(t testing.TB, slow int) *hub {
	t.Helper()
	root := t.TempDir()
	address := harness.Address(harness.FreePort(t)) // where it may be started again
	h := &hub{t: t, dir: filepath.Join(root, "models"), record: filepath.Join(root, "record"), listen: address}
	h.put("acme/Tiny-GGUF/tiny-Q8_0.gguf", harness.ShippedModel(t))
	if slow > 0 {
		h.fault = fmt.Sprintf(`{"path":"/cdn/","bytes_per_second":%d}`, slow)
	}
	h.start()
	t.Cleanup(func() {
		_ = h.input.Close()
		_ = h.process.Process.Kill()
		_ = h.process.Wait()
	})
	return h
}

// put gives the hub a file before it starts.
func (h *hub) put(path string, content []byte) {
	h.t.Helper()
	path = filepath.Join(h.dir, filepath.FromSlash(path))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) start() {
	h.t.Helper()
	binary, err := hubBinary()
	if err != nil {
		h.t.Fatal(err)
	}
	h.process = exec.Command(binary, "-listen", h.listen, "-dir", h.dir, "-record", h.record, "-fault", h.fault)
	h.process.Stderr = os.Stderr
	if h.input, err = h.process.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	output, err := h.process.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.process.Start(); err != nil {
		h.t.Fatal(err)
	}
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		h.t.Fatalf("the hub has no address: %v", err)
	}
	h.URL = strings.TrimSpace(address)
	h.listen = strings.TrimPrefix(h.URL, "http://")
}

// restart kills the hub like a crash, and starts it again at the same address.
func (h *hub) restart() {
	h.t.Helper()
	_ = h.process.Process.Kill()
	_ = h.process.Wait()
	h.start()
}

// tell sends the hub a command.
func (h *hub) tell(what string, body any) {
	h.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	response, err := http.Post(h.URL+"/_hub/"+what, "application/json", strings.NewReader(string(text)))
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(response.Body)
		h.t.Fatalf("the hub refuses to %s: %s", what, answer)
	}
}

func (h *hub) mend() { h.t.Helper(); h.tell("mend", struct{}{}) }

// hubRequest is the beginning of a request for a file: the host, the token and the bytes requested.
type hubRequest struct {
	Host  string    `json:"host"`
	Path  string    `json:"path"`
	Range string    `json:"range"`
	Token string    `json:"token"`
	From  int64     `json:"from"`
	To    int64     `json:"to"`
	At    time.Time `json:"at"`
}

// requests returns all requests for files, across restarts.
func (h *hub) requests() []hubRequest {
	h.t.Helper()
	text, err := os.ReadFile(h.record)
	if err != nil {
		h.t.Fatal(err)
	}
	var all []hubRequest
	for line := range strings.Lines(string(text)) {
		var r hubRequest
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			h.t.Fatalf("the hub's record: %v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// asked returns all completed requests since the hub's start, including those of its API.
func (h *hub) asked() []hubRequest {
	h.t.Helper()
	response, err := http.Get(h.URL + "/_hub/requests")
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	var all []hubRequest
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		h.t.Fatal(err)
	}
	return all
}

// config returns a Caddyfile of a server that downloads from the hub.
func (h *hub) config() harness.Config {
	return harness.Config{LM: []string{"hub " + h.URL + " {", "\ttoken " + hubToken, "\tstall_timeout 1s", "}"}}
}
