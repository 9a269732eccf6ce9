package fakeengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// server is the HTTP side of a process.
type server struct {
	*process
	created   int64
	port      int
	listeners []net.Listener
	http      *http.Server
	keys      []string
	loaded    atomic.Bool
	slots     *slots
	context   int // tokens of one slot

	loop    sync.Mutex     // held by what nothing else goes on beside
	actions sync.WaitGroup // on slots, that have begun

	mu    sync.Mutex
	idle  *sync.Cond // with mu; told when active falls
	count int        // generating requests that were let in
	over  int        // those of them that have ended
}

func newServer(p *process, s *Script) *server {
	n, perSlot, _ := p.args.slots(s.trainContext())
	v := &server{process: p, created: time.Now().Unix(), keys: p.args.keys, slots: newSlots(n), context: perSlot}
	v.idle = sync.NewCond(&v.mu)
	v.http = &http.Server{
		Handler:     http.HandlerFunc(v.handle),
		ErrorLog:    log.New(io.Discard, "", 0),
		IdleTimeout: 5 * time.Second, // as the real one's Keep-Alive: timeout=5
	}
	return v
}

// listen binds all hosts, tells that the process has started, and reports success. The port is bound before the load, as the real one
// does.
func (v *server) listen(refuse, noSockets bool) bool {
	v.port = v.args.port
	for _, host := range v.args.hosts {
		network, address := "tcp", net.JoinHostPort(host, strconv.Itoa(v.port))
		if strings.HasSuffix(host, ".sock") {
			network, address = "unix", host
		}
		l, err := net.Listen(network, address)
		if err != nil || refuse || network == "unix" && noSockets {
			v.TellStarted(v.port, "LLAMA_", "GGML_")
			logf('E', "srv         start: couldn't bind HTTP server socket, hostname: %s, port: %d", host, v.port)
			return false
		}
		switch l := l.(type) {
		case *net.TCPListener:
			v.port = l.Addr().(*net.TCPAddr).Port
		case *net.UnixListener:
			l.SetUnlinkOnClose(false) // the real one leaves its file
		}
		v.listeners = append(v.listeners, l)
	}
	v.TellStarted(v.port, "LLAMA_", "GGML_")
	return true
}

func (v *server) serve() {
	for _, l := range v.listeners {
		go func() {
			if err := v.http.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				logf('E', "srv  llama_server: %v", err)
			}
		}()
	}
}

// addresses are the listeners as the log names them.
func (v *server) addresses() []string {
	var all []string
	for _, l := range v.listeners {
		scheme := "http"
		if l.Addr().Network() == "unix" {
			scheme = "unix"
		}
		all = append(all, scheme+"://"+l.Addr().String())
	}
	return all
}

// hangUp takes no more connections and closes those that are idle. Requests in flight stay.
func (v *server) hangUp() {
	v.closeListeners()
	go func() { _ = v.http.Shutdown(context.Background()) }()
}

func (v *server) closeListeners() {
	for _, l := range v.listeners {
		_ = l.Close()
	}
}

// drain takes no more connections, waits until no generating request is in flight, and then a moment for the last bytes.
func (v *server) drain() {
	v.closeListeners()
	v.mu.Lock()
	for v.count > v.over {
		v.idle.Wait()
	}
	v.mu.Unlock()
	v.actions.Wait()
	// An idle kept-alive connection holds the real one up as long.
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	_ = v.http.Shutdown(ctx)
}

// enter numbers a generating request, from 1.
func (v *server) enter() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count++
	return v.count
}

func (v *server) leave() {
	v.mu.Lock()
	v.over++
	idle, over := v.count == v.over, v.over
	v.mu.Unlock()
	v.idle.Broadcast()
	if s := v.script(); idle && s.ExitAfter > 0 && over >= s.ExitAfter {
		go func() {
			v.drain()
			v.Exit(s.ExitCode, "idle")
		}()
	}
}

// inFlight is the number of generating requests that wait or are served.
func (v *server) inFlight() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count - v.over
}

// handle is every request's way: read it whole, write it down, check the key, refuse while loading, answer.
func (v *server) handle(w http.ResponseWriter, r *http.Request) {
	if most := v.script().DieReading; most > 0 && r.ContentLength >= most {
		_, _ = io.CopyN(io.Discard, r.Body, most)
		v.die(Death{}, "reading a body")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away while sending
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h := w.Header()
	h.Set("Server", "llama.cpp")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	event := Event{Kind: Request, Method: r.Method, Path: r.URL.Path, Header: r.Header, Body: string(body)}
	if r.URL.Path == "/apply-template" {
		event.Kind = Rendered
	}
	refused := v.refusal(r)
	kind, generates := generators[r.URL.Path]
	if refused != nil || !generates || r.Method != http.MethodPost {
		v.Tell(event)
		if refused != nil {
			refused.write(w)
			return
		}
		v.answerOther(w, r, string(body))
		return
	}
	event.N = v.enter()
	defer v.leave()
	v.Tell(event)
	v.generate(w, r, kind, string(body), event.N)
}

// refusal is why a request isn't let in, or nil.
func (v *server) refusal(r *http.Request) *apiError {
	public := r.URL.Path == "/health" || r.URL.Path == "/v1/health" || r.Method == http.MethodOptions
	if !public && len(v.keys) > 0 {
		key := r.Header.Get("X-Api-Key")
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			key = bearer
		}
		if !slices.Contains(v.keys, key) {
			return &apiError{Code: http.StatusUnauthorized, Message: "Invalid API Key", Type: "authentication_error", early: true}
		}
	}
	if !v.loaded.Load() {
		return &apiError{Code: http.StatusServiceUnavailable, Message: "Loading model", Type: "unavailable_error", early: true}
	}
	return nil
}

// answerOther answers what generates nothing, by a rule for its path where there is one.
func (v *server) answerOther(w http.ResponseWriter, r *http.Request, body string) {
	rule := v.uses.Other(v.script().Rules, r.URL.Path, body)
	g := &generation{server: v, w: w, ctx: r.Context()}
	if err := g.wait(rule.Gate, rule.FirstDelay); err != nil {
		return
	}
	if rule.Status != 0 {
		refuse(w, rule.Status, rule.Body)
		return
	}
	if number, ok := strings.CutPrefix(r.URL.Path, "/slots/"); ok && r.Method == http.MethodPost {
		v.act(w, r, number, body)
		return
	}
	endpoint, ok := endpoints[r.Method+" "+r.URL.Path]
	if r.Method == http.MethodOptions {
		endpoint, ok = (*server).preflight, true
	}
	if !ok {
		(&apiError{Code: http.StatusNotFound, Message: "File Not Found", Type: "not_found_error", early: true}).write(w)
		return
	}
	endpoint(v, w, r, body)
}

// apiError is the real server's error.
type apiError struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	Type         string `json:"type"`
	PromptTokens int    `json:"n_prompt_tokens,omitempty"`
	Context      int    `json:"n_ctx,omitempty"`

	early bool // made before the endpoint is reached, which puts the code last
}

func (e *apiError) Error() string { return e.Message }

func (e *apiError) frame() []byte {
	if e.early {
		return encode(map[string]any{"error": struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    int    `json:"code"`
		}{e.Message, e.Type, e.Code}})
	}
	return encode(map[string]*apiError{"error": e})
}

func (e *apiError) write(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	writeBody(w, e.Code, e.frame())
}

// errorType is the type that goes with a status.
func errorType(status int) string {
	types := map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		501: "not_supported_error", 503: "unavailable_error",
	}
	if t, ok := types[status]; ok {
		return t
	}
	return "server_error"
}

// refuse answers with a scripted status and body.
func refuse(w http.ResponseWriter, status int, body string) {
	if body == "" && status >= 400 {
		(&apiError{Code: status, Message: fmt.Sprintf("scripted status %d", status), Type: errorType(status)}).write(w)
		return
	}
	writeBody(w, status, []byte(body))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if status < 400 {
		w.Header().Set("Keep-Alive", "timeout=5, max=100")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
