package e2e

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const eventsPath = "/api/v1/events"

// eventStream reads GET /api/v1/events.
type eventStream struct {
	t     testing.TB
	lines *bufio.Scanner
	id    string // of the last event
	close func()
}

// events begins to read, over TCP, or over a Unix socket if it isn't empty.
func events(s *harness.Server, token, query, lastID, socket string) *eventStream {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.T.Context())
	s.T.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+eventsPath+query, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if socket != "" {
			network, address = "unix", socket
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.T.Fatalf("status %d", resp.StatusCode)
	}
	e := &eventStream{t: s.T, lines: bufio.NewScanner(resp.Body), close: cancel}
	e.lines.Buffer(nil, 1<<20)
	return e
}

// next returns the data of the next event; false at the end of the stream.
func (e *eventStream) next() (gjson.Result, bool) {
	for e.lines.Scan() {
		if id, ok := strings.CutPrefix(e.lines.Text(), "id: "); ok {
			e.id = id
		}
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok {
			return gjson.Parse(data), true
		}
	}
	return gjson.Result{}, false
}

// until reads up to an event of a type, and returns the types of all, each once in a row, and the last event.
func (e *eventStream) until(kind string) (kinds []string, last gjson.Result) {
	e.t.Helper()
	for {
		event, ok := e.next()
		if !ok {
			e.t.Fatalf("the stream ends before %s, after %v: %v", kind, kinds, e.lines.Err())
		}
		if is := event.Get("type").Str; len(kinds) == 0 || kinds[len(kinds)-1] != is {
			kinds = append(kinds, is)
		}
		if event.Get("type").Str == kind {
			return kinds, event
		}
	}
}

// wantKinds checks that types come in an order; others may be between them.
func wantKinds(t testing.TB, kinds []string, want ...string) {
	t.Helper()
	rest := kinds
	for _, kind := range want {
		i := slices.Index(rest, kind)
		if i < 0 {
			t.Errorf("there is no %s in its place in %v", kind, kinds)
			return
		}
		rest = rest[i+1:]
	}
}

// TestEvents_OfEverything: a download, a load, a chat, a record of the log and an unload, for an administrator and for a token that sees
// less. The stream goes on after a break, and ends with the server.
func TestEvents_OfEverything(t *testing.T) {
	t.Parallel()
	h := newHub(t, 4<<20)
	config := h.config()
	config.Site = []string{"lm_auth"}
	home := withEngine(t)
	s := harness.Start(home, config)
	root, ours, others := created(t, home, "--name", "admin", "--scopes", "admin"), created(t, home, "--name", "user"), created(t, home, "--name", "other", "--models", "nobody/*")
	admin, user := s.As(root), s.As(ours)
	const all = "?types=*"
	sees, own, hidden := events(s, root, all, "", ""), events(s, ours, all, "", ""), events(s, others, "", "", "")
	for _, stream := range []*eventStream{sees, own, hidden} {
		if first, _ := stream.next(); first.Get("type").Str != "events.start" || first.Get("resumed").Bool() {
			t.Errorf("the first event: %s", first)
		}
	}
	admin.Get("/api/v1/models").Want(t, http.StatusOK)
	admin.Post(downloadPath, harness.Fields{"model": tinyRepo}).Want(t, http.StatusOK)
	kinds, _ := sees.until("download.completed")
	wantKinds(t, kinds, "download.start", "download.progress", "models.changed", "download.completed")

	model := harness.Fields{"model": "acme/tiny", "max_tokens": 3, "messages": []harness.Fields{{"role": "user", "content": "Hello"}}}
	user.Post(harness.ChatPath, model).Want(t, http.StatusOK)
	kinds, end := sees.until("request.end")
	wantKinds(t, kinds, "request.start", "model_load.start", "model_load.end", "request.end")
	if !slices.Contains(kinds, "log.record") || end.Get("request.outcome").Str != "ok" || end.Get("request.output_tokens").Int() != 3 || end.Get("request.token_name").Str != "user" {
		t.Errorf("%v: %s", kinds, end)
	}
	if _, end := own.until("request.end"); end.Get("request.model").Str != "acme/tiny" {
		t.Errorf("one's own: %s", end)
	}

	last := sees.id
	sees.close()
	admin.Post(harness.UnloadPath, harness.Fields{"instance_id": "acme/tiny"}).Want(t, http.StatusOK)
	sees = events(s, root, all, last, "")
	if first, _ := sees.next(); !first.Get("resumed").Bool() {
		t.Errorf("after a break: %s", first)
	}
	kinds, end = sees.until("model_unload.end")
	wantKinds(t, kinds, "model_unload.start", "model_unload.end")
	if slices.Contains(kinds, "request.end") || end.Get("reason").Str != "unload" {
		t.Errorf("after a break: %v, %s", kinds, end)
	}

	if status := s.Stop(syscall.SIGTERM, harness.Patience); status != 0 {
		t.Errorf("the server ends with %d", status)
	}
	for name, stream := range map[string]*eventStream{"an administrator's": sees, "the user's": own, "another's": hidden} {
		for {
			event, ok := stream.next()
			if !ok {
				break
			}
			if name == "another's" && strings.Contains(event.Raw, "tiny") || name == "the user's" && event.Get("type").Str == "log.record" {
				t.Errorf("%s stream has %s", name, event)
			}
		}
		if err := stream.lines.Err(); err != nil {
			t.Errorf("%s stream is cut: %v", name, err)
		}
	}
}

// TestEvents_AReaderThatDoesNotRead holds nothing up, costs little memory, and learns afterwards how much it has missed.
func TestEvents_AReaderThatDoesNotRead(t *testing.T) {
	t.Parallel()
	l := startLimited(t, "")
	admin := created(t, l.Home, "--name", "admin", "--scopes", "admin")
	token := created(t, l.Home, "--name", "busy")
	l.wantServed(token)
	before := residentMemory(t, l.PID)
	slow := events(l.Server, admin, "", "", l.RunFile("lmcaddy.sock")) // the system may keep all events for a TCP connection
	if first, _ := slow.next(); first.Get("type").Str != "events.start" {
		t.Fatal(first)
	}
	const requests = 15_000 // that are refused, since the model is unknown: as many events
	var all sync.WaitGroup
	begun := time.Now()
	for range 8 {
		all.Go(func() {
			for range requests / 8 {
				l.ask(token, harness.Ask("Hello").With("model", "nobody/nothing"))
			}
		})
	}
	l.wantServed(token)
	all.Wait()
	took := time.Since(begun)
	after := residentMemory(t, l.PID)
	t.Logf("%d requests in %s; resident memory before %d MiB, after %d MiB", requests, took, before>>20, after>>20)
	if after-before > 60<<20 {
		t.Errorf("the resident memory grows by %d MiB", (after-before)>>20)
	}
	seen, missed := 0, int64(0)
	const marker = "the-last"
	header := http.Header{"Authorization": {"Bearer " + token}, "X-Request-Id": {marker}}
	l.PostWith(header, harness.ChatPath, harness.Ask("Hello").With("max_tokens", 1)).Want(t, http.StatusOK)
	for {
		event, ok := slow.next()
		if !ok {
			t.Fatalf("the stream ends after %d events, and %d missed ones: %v", seen, missed, slow.lines.Err())
		}
		switch kind := event.Get("type").Str; {
		case kind == "events.missed":
			missed += event.Get("number").Int()
		case event.Get("request.id").Str == marker && kind == "request.end":
			if missed == 0 || int64(seen)+missed < requests {
				t.Errorf("%d events were seen, and %d missed, of at least %d", seen, missed, requests)
			}
			t.Logf("%d events were seen, and %d missed", seen, missed)
			return
		default:
			seen++
		}
	}
}
