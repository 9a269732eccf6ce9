package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// outcome is what a client saw of a request: one of these, or the status and code of an error, such as "503 shutting_down", or
// "event engine_failed" for a stream that ended with an error.
type outcome string

const (
	answered outcome = "ok"
	lost     outcome = "lost"    // no answer: the connection was refused, or broke
	raced    outcome = "raced"   // no answer: sent on an idle connection while the server closed it, as HTTP/1.1 can't rule out
	cut      outcome = "cut"     // an answer that was cut off without an error
	hung     outcome = "hung"    // nothing within the client's deadline
	wrong    outcome = "wrong"   // an empty answer
	unclear  outcome = "unclear" // an error that doesn't say what to do
)

// deadline is how long a client waits.
const deadline = 2 * time.Minute

// clear errors say more than that there was an error.
func clearly(kind string, e gjson.Result) outcome {
	code, message := e.Get("code").Str, e.Get("message").Str
	if code == "" {
		code = e.Get("type").Str
	}
	if code == "" || len(message) < 15 || strings.Contains(message, "made a mistake") {
		return unclear
	}
	return outcome(kind + " " + code)
}

// result of one request.
type reply struct {
	outcome
	body string // of an answer in one piece
	took time.Duration
}

// send sends one request, and waits for the end of its answer. It opens a connection unless the client has one.
func send(ctx context.Context, client *http.Client, url string, body harness.Fields) (r reply) {
	begun := time.Now()
	defer func() { r.took = time.Since(begun) }()
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	isKept := false
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { isKept = c.Reused || c.WasIdle }})
	text, err := json.Marshal(body)
	if err != nil {
		return reply{outcome: outcome(err.Error())}
	}
	req, err := http.NewRequestWithContext(traced, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return reply{outcome: outcome(err.Error())}
	}
	req.Header.Set("Content-Type", "application/json")
	failed := func(otherwise outcome) reply {
		if errors.Is(limited.Err(), context.DeadlineExceeded) {
			return reply{outcome: hung}
		}
		return reply{outcome: otherwise}
	}
	resp, err := client.Do(req)
	if err != nil {
		if isKept {
			return failed(raced)
		}
		r = failed(lost)
		r.body = err.Error()
		return r
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		ended, err := readEvents(resp.Body)
		if err != nil || ended == cut {
			return failed(cut)
		}
		return reply{outcome: ended}
	}
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return failed(cut)
	}
	said := gjson.ParseBytes(content)
	switch {
	case resp.StatusCode != http.StatusOK:
		return reply{outcome: clearly(fmt.Sprint(resp.StatusCode), said.Get("error")), body: string(content)}
	case said.Get("choices.0.finish_reason").Str == "" && !said.Get("output.0").Exists() && !said.Get("models.0").Exists():
		return reply{outcome: wrong, body: string(content)}
	}
	return reply{outcome: answered, body: string(content)}
}

// readEvents reads an OpenAI-style stream to its end.
func readEvents(from io.Reader) (outcome, error) {
	lines := bufio.NewReader(from)
	for ended := cut; ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return ended, nil
		}
		if err != nil {
			return ended, err
		}
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		switch {
		case !ok:
		case data == "[DONE]" && ended == cut:
			ended = answered
		case gjson.Get(data, "error").IsObject():
			ended = clearly("event", gjson.Get(data, "error"))
		}
	}
}

// alone is a client that opens a connection for each request, so that none uses a connection that the server is closing.
func alone() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// crowd is a number of running requests.
type crowd struct {
	r   *round
	all sync.WaitGroup

	mu      sync.Mutex
	replies []reply
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // it ends with the crowd
}

func (r *round) crowd() *crowd {
	c := &crowd{r: r}
	c.ctx, c.stop = context.WithCancel(r.ctx)
	r.Cleanup(func() {
		c.stop()
		c.all.Wait()
	})
	return c
}

// ask has another client send a request.
func (c *crowd) ask(s *harness.Server, path string, body harness.Fields) {
	url := s.Base + path
	c.all.Go(func() { c.add(send(c.ctx, alone(), url, body)) })
}

// chats has n clients request long answers, some of them streamed.
func (c *crowd) chats(s *harness.Server, n, tokens int) {
	for i := range n {
		c.ask(s, harness.ChatPath, harness.Long(tokens).With("stream", i%2 == 0 || c.r.IntN(2) == 0))
	}
}

func (c *crowd) add(one reply) {
	if c.ctx.Err() != nil && (one.outcome == lost || one.outcome == raced) {
		return // we ended it ourselves
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = append(c.replies, one)
	c.r.seen.add(one.outcome)
}

// want waits for all answers. Each must have one of these outcomes.
func (c *crowd) want(some ...outcome) []reply {
	c.all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.replies {
		if !slices.Contains(some, one.outcome) {
			c.r.Errorf("a client saw %q after %s, want one of %q: %.300s", one.outcome, one.took.Round(time.Millisecond), some, one.body)
		}
	}
	return c.replies
}

// tally counts outcomes, and keeps the largest of what was measured.
type tally struct {
	mu      sync.Mutex
	count   map[outcome]int
	figures map[string]float64 // by their units
}

// measured keeps a figure if it is the largest with its unit, such as "MiB a request".
func (t *tally) measured(figure float64, unit string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.figures == nil {
		t.figures = map[string]float64{}
	}
	t.figures[unit] = max(t.figures[unit], figure)
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[outcome]int{}
	}
	t.count[o]++
}

// errors are the outcomes that were reported by an error, by its code.
func (t *tally) errors() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	for _, o := range slices.Sorted(maps.Keys(t.count)) {
		if !slices.Contains([]outcome{answered, lost, cut, hung, wrong, unclear}, o) {
			words = append(words, fmt.Sprintf("%d × %s", t.count[o], o))
		}
	}
	return strings.Join(words, ", ")
}

func (t *tally) of(some ...outcome) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range some {
		n += t.count[o]
	}
	return n
}

// statusOf reads an answer's header and error from a connection.
func statusOf(conn io.Reader) outcome {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return lost
	}
	defer resp.Body.Close()
	content, _ := io.ReadAll(resp.Body) // what has arrived is enough
	if resp.StatusCode == http.StatusOK {
		return answered
	}
	return clearly(fmt.Sprint(resp.StatusCode), gjson.GetBytes(content, "error"))
}
