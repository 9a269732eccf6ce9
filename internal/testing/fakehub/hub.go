package fakehub

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
)

// Hub is a running hub. Its methods may be called from any goroutine.
type Hub struct {
	URL string // of the API, without a trailing slash
	CDN string // URL of the server that sends files

	mu       sync.Mutex
	repos    map[string]*repo
	tokens   map[string]bool // nil: no token is required
	faults   []*active
	release  chan struct{} // closed to end stalls
	requests []Request
	under    int // number of requests in progress
	pageSize int
	inline   bool

	record *json.Encoder // of requests for files; may be nil

	servers []*http.Server
	opened  map[net.Conn]struct{}
	serving sync.WaitGroup
}

// Request is a completed request.
type Request struct {
	Host   string    `json:"host"` // of the URL
	Path   string    `json:"path"`
	Query  string    `json:"query,omitempty"`
	Range  string    `json:"range,omitempty"`
	Token  string    `json:"token,omitempty"` // the Authorization header
	If     string    `json:"if_range,omitempty"`
	Status int       `json:"status"`
	From   int64     `json:"from"` // first byte of the file that was sent
	To     int64     `json:"to"`   // after the last byte
	At     time.Time `json:"at"`
}

// Start runs a hub until the end of the test.
func Start(t testing.TB) *Hub {
	t.Helper()
	h, err := Listen(closedport.Address(t)) // which is still its own while it is killed
	if err != nil {
		t.Fatalf("fakehub: %v", err)
	}
	t.Cleanup(h.Close)
	return h
}

// Listen runs a hub at an address, and its file server at another port of the same host. Close stops it.
func Listen(address string) (*Hub, error) {
	h := newHub()
	if err := h.open(address); err != nil {
		return nil, err
	}
	return h, nil
}

func newHub() *Hub {
	return &Hub{repos: map[string]*repo{}, release: make(chan struct{}), opened: map[net.Conn]struct{}{}, pageSize: 1000}
}

func (h *Hub) open(address string) error {
	front, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(front.Addr().String())
	if err != nil {
		return err
	}
	back, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	h.URL, h.CDN = "http://"+front.Addr().String(), "http://"+back.Addr().String()
	h.serve(front, h.front())
	h.serve(back, http.HandlerFunc(h.cdn))
	return nil
}

func (h *Hub) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ConnState: func(c net.Conn, state http.ConnState) {
			h.mu.Lock()
			defer h.mu.Unlock()
			switch state {
			case http.StateNew:
				h.opened[c] = struct{}{}
			case http.StateClosed, http.StateHijacked:
				delete(h.opened, c)
			default:
			}
		},
	}
	h.servers = append(h.servers, server)
	h.serving.Go(func() { _ = server.Serve(listener) })
}

// Kill breaks all connections and stops listening, like a killed process. Revive restarts the hub at the same address.
func (h *Hub) Kill() {
	for _, s := range h.servers {
		_ = s.Close()
	}
	h.serving.Wait()
	h.servers = nil
}

// Revive restarts a killed hub.
func (h *Hub) Revive() error { return h.open(h.URL[len("http://"):]) }

// CutAll breaks all connections. New ones are accepted.
func (h *Hub) CutAll() { h.cutBut("") }

// cutBut breaks all connections except that from an address.
func (h *Hub) cutBut(remote string) {
	h.mu.Lock()
	all := make([]net.Conn, 0, len(h.opened))
	for c := range h.opened {
		if c.RemoteAddr().String() != remote {
			all = append(all, c)
		}
	}
	h.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Close stops the hub.
func (h *Hub) Close() {
	h.Mend()
	h.Kill()
}

// RequireToken restricts repositories to requests with one of these tokens.
func (h *Hub) RequireToken(tokens ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = map[string]bool{}
	for _, t := range tokens {
		h.tokens[t] = true
	}
}

// PageSize sets the number of files on a page of a tree.
func (h *Hub) PageSize(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pageSize = n
}

// Inline makes the hub send files itself, without a redirect.
func (h *Hub) Inline() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inline = true
}

// Requests returns the completed requests in order.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Forget clears the list of requests.
func (h *Hub) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = nil
}

func (h *Hub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under++
}

func (h *Hub) end(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.under--
	h.requests = append(h.requests, r)
}

// begins records a request, with the bytes to be sent.
func (h *Hub) begins(r Request, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.record != nil {
		r.From, r.To = from, to
		_ = h.record.Encode(r) // a test will notice the gap
	}
}

// Quiet waits until no request is in progress.
func (h *Hub) Quiet(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		under := h.under
		h.mu.Unlock()
		switch {
		case under == 0:
			return
		case time.Now().After(end):
			t.Fatalf("fakehub: %d requests are being answered still", under)
		}
	}
}

// patience is enough for busy machines.
const patience = 60 * time.Second

// Sent returns the number of bytes of a file that were sent by all requests.
func (h *Hub) Sent(file string) int64 {
	n := int64(0)
	for _, r := range h.Requests() {
		if r.Path == "/cdn/"+file || hasSuffix(r.Path, "/"+file) {
			n += r.To - r.From
		}
	}
	return n
}

func hasSuffix(path, suffix string) bool {
	return len(path) >= len(suffix) && path[len(path)-len(suffix):] == suffix
}

// Add adds a repository, or a new commit that replaces its files. Models, and all files of at least 1 KiB, are in large file
// storage: they have a SHA-256.
func (h *Hub) Add(name string, files Files) {
	r := &repo{name: name}
	for path, content := range files {
		sum, git, err := sums(content)
		if err != nil {
			panic(fmt.Sprintf("fakehub: %s: %v", path, err)) // a mistake of the test
		}
		r.files = append(r.files, &file{path: path, content: content, sha256: sum, git: git, listed: content.Size()})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(r)
}
