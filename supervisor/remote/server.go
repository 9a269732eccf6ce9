// Package remote reaches servers of models over the network that this one hasn't started: another lmcaddy, vLLM, SGLang, LM Studio, Ollama,
// llama-server, or any other with an OpenAI-style API. A [Server] is the connection to one. A [Watch] finds out which models it has and
// whether it can be reached, in a goroutine of its own.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/internal/secret"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const (
	dialTimeout = 5 * time.Second
	// pingAfter is how long a connection of HTTP/2 may be silent before it is asked whether it is alive, and pingTimeout how long it may
	// take to answer. Connections of HTTP/1 have the system's probes.
	pingAfter   = 15 * time.Second
	pingTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept without a request. Many servers close it earlier.
	idleTimeout = 30 * time.Second
	// maxHeader bounds the header of an answer, and maxList what a server may say of itself, in bytes.
	maxHeader = 64 << 10
	maxList   = 16 << 20
)

// Server is the connection to a remote.
type Server struct {
	config Config
	self   string // the id of this server, as [supervisor.Via]
	base   string
	client *http.Client
	kind   atomic.Value // a string, once it is known

	mu       sync.Mutex
	inFlight context.Context    //nolint:containedctx // ended and replaced when requests in progress are given up
	abandon  context.CancelFunc // ends inFlight
}

// NewServer returns the connection to a remote. It connects when it is first used. self is the id of this server, as [supervisor.Via].
func NewServer(c Config, self string) (*Server, error) {
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: pingAfter,
		Interval: pingTimeout / 2, Count: 3,
	}}
	inFlight, abandon := context.WithCancel(context.Background())
	return &Server{
		config: c, self: self, base: c.base(), inFlight: inFlight, abandon: abandon,
		client: &http.Client{
			// The key must not reach another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{ // without the environment's proxy
				DialContext:            dialer.DialContext,
				TLSClientConfig:        secure,
				TLSHandshakeTimeout:    dialTimeout,
				ForceAttemptHTTP2:      true,
				HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
				MaxIdleConnsPerHost:    64,
				IdleConnTimeout:        idleTimeout,
				MaxResponseHeaderBytes: maxHeader,
				DisableCompression:     true,
				ReadBufferSize:         32 << 10,
			},
		},
	}, nil
}

func (c *Config) tls() (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("tls_ca: %w", err)
		}
		if secure.RootCAs, err = x509.SystemCertPool(); err != nil {
			secure.RootCAs = x509.NewCertPool()
		}
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls_ca: the file %s has no certificate in the PEM format", c.CA)
		}
	}
	if c.Pin != "" {
		secure.InsecureSkipVerify = true                                // the pin is checked instead
		want, _ := hex.DecodeString(strings.ReplaceAll(c.Pin, ":", "")) // was validated
		secure.VerifyConnection = func(state tls.ConnectionState) error {
			if sum := sha256.Sum256(state.PeerCertificates[0].Raw); !bytes.Equal(sum[:], want) {
				return fmt.Errorf("its certificate isn't the one of tls_pin: its SHA-256 is %x", sum)
			}
			return nil
		}
	}
	return secure, nil
}

// Close closes the connections that aren't used.
func (s *Server) Close() {
	s.client.CloseIdleConnections()
}

var errSevered = errors.New("it has stopped answering")

// Post sends a JSON body. Nothing of a client's request but the body is sent, and which servers like this one it has passed.
func (s *Server) Post(ctx context.Context, path string, body supervisor.Payload) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	detach := context.AfterFunc(s.inFlight, func() { cancel(errSevered) })
	s.mu.Unlock()
	end := func() {
		detach()
		cancel(nil)
	}
	resp, err := s.send(ctx, path, body)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSevered) {
			err = errSevered
		}
		end()
		return nil, err
	}
	resp.Body = &severableBody{resp.Body, end}
	return resp, nil
}

type severableBody struct {
	io.ReadCloser
	end func()
}

func (b *severableBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

func (s *Server) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandon()
	s.inFlight, s.abandon = context.WithCancel(context.Background())
	s.Close()
}

func (s *Server) send(ctx context.Context, path string, body supervisor.Payload) (*http.Response, error) {
	req, err := s.request(ctx, http.MethodPost, path)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if d := body.Demand; s.config.Peer != "" && d != nil {
		req.Header.Set(OwnerHeader, url.QueryEscape(d.Owner))
		if d.TTL != nil {
			req.Header.Set(TTLHeader, d.TTL.String())
		}
		if keep := d.Retention; keep != nil && keep.OnlyOwned {
			req.Header.Set(KeepHeader, keep.TTL.String()+keepOwn)
		} else if keep != nil {
			req.Header.Set(KeepHeader, keep.TTL.String())
		}
	}
	req.Body, req.ContentLength = body.Reader(), body.Size()
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	req.Header["X-Idempotency-Key"] = nil // not sent: it lets the transport send the request again if an idle connection was closed
	return s.do(req)
}

// do sends a request. The answer is without the key, and an error without the address.
func (s *Server) do(req *http.Request) (*http.Response, error) {
	resp, err := s.client.Do(req) //nolint:gosec // the operator has given the address
	if err != nil {
		return nil, s.withoutURL(err)
	}
	resp.Body = secret.Mask(resp.Body, s.config.Key)
	return resp, nil
}

// request returns a request with the header that all have.
func (s *Server) request(ctx context.Context, method, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", outbound.UserAgent)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Via", supervisor.FormatVia(append(slices.Clip(supervisor.Via(ctx)), s.self)))
	if s.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.config.Key)
	}
	if s.config.Peer != "" {
		req.Header.Set(NodeHeader, s.config.Peer)
	}
	return req, nil
}

// Silence returns how long an answer may send nothing.
func (s *Server) Silence() time.Duration {
	if s.config.Stall > 0 {
		return s.config.Stall
	}
	return DefaultStall
}

// Alive asks whether the server answers.
func (s *Server) Alive(ctx context.Context) error {
	kind, _ := s.kind.Load().(string)
	path := "/v1/models"
	switch kind {
	case KindVLLM, KindSGLang, KindLlamaServer:
		path = "/health"
	case KindLmcaddy:
		path = "/api/v1/health"
	case KindOllama:
		path = "/api/version"
	}
	err := s.ask(ctx, path, nil, nil)
	if status, ok := errors.AsType[*statusError](err); ok {
		switch {
		case status.status == http.StatusServiceUnavailable && kind == KindLmcaddy:
			return nil // it has no engine, or can't reach the store; what it is sent needs no store
		case status.status == http.StatusNotFound:
			return nil // what is in front of it lets nothing pass but requests for text and the list
		}
	}
	return err
}

// ask asks for a document, by POST if a body is given. If into isn't nil, the answer is parsed.
func (s *Server) ask(ctx context.Context, path string, body, into any) error {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := s.request(ctx, method, path)
	if err != nil {
		return err
	}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		req.Header.Set("Content-Type", "application/json")
	}
	status, text, err := s.read(req, maxList)
	switch {
	case status != 0 && status != http.StatusOK:
		return &statusError{status, bytes.Contains(text, []byte("HTTPS"))}
	case err != nil || into == nil:
		return err
	}
	err = json.Unmarshal(text, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &formError{cmp.Or(printable(wrong.Field), "it"), printable(wrong.Value)}
	}
	if err != nil {
		return errNotJSON
	}
	return nil
}

// read sends a request, and returns the status and the body of the answer, which may have most bytes. The status is 0 without an answer.
func (s *Server) read(req *http.Request, most int64) (status int, body []byte, err error) {
	resp, err := s.do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errors.New("its answer is too large")
	}
	return resp.StatusCode, body, s.withoutURL(err)
}

// The headers of requests between the nodes of a cluster, beside the key.
const (
	NodeHeader  = "Lm-Node"  // the name of the node that sends the request
	OwnerHeader = "Lm-Owner" // who has sent it to that node, escaped as in a query
	TTLHeader   = "Lm-Ttl"   // how long the model stays loaded if the request has it loaded, as a duration of Go
	KeepHeader  = "Lm-Keep"  // how long it stays loaded after the request, likewise; with ";own": if the owner has loaded it
)

const keepOwn = ";own"

// ParseTTL returns what another node has sent in the TTLHeader; nil: nothing.
func ParseTTL(header http.Header) *time.Duration {
	ttl, err := time.ParseDuration(header.Get(TTLHeader))
	if err != nil || ttl < 0 {
		return nil
	}
	return &ttl
}

// ParseRetention returns what another node has sent in the KeepHeader; nil: nothing.
func ParseRetention(header http.Header) *schedule.Retention {
	text, own := strings.CutSuffix(header.Get(KeepHeader), keepOwn)
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < 0 {
		return nil
	}
	return &schedule.Retention{TTL: ttl, OnlyOwned: own}
}

// addLoaded asks another node how many requests its instances answer at a time, and whether they are pinned.
func (s *Server) addLoaded(ctx context.Context, models []Model) error {
	var said struct {
		Instances []struct {
			Model  string `json:"model"`
			Slots  int    `json:"slots"`
			Pinned bool   `json:"pinned"`
		} `json:"instances"`
	}
	if err := s.ask(ctx, "/api/v1/ps", nil, &said); err != nil {
		return err
	}
	slots, pinned := map[string]int{}, map[string]bool{}
	for _, in := range said.Instances {
		slots[in.Model] += max(0, in.Slots)
		pinned[in.Model] = pinned[in.Model] || in.Pinned
	}
	for i := range models {
		models[i].Slots, models[i].Pinned = slots[models[i].ID], pinned[models[i].ID]
	}
	return nil
}

// Open sends another node a request without a body, and returns the body of the answer if its status is 200.
func (s *Server) Open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := s.request(ctx, method, path)
	if err != nil {
		return nil, err
	}
	resp, err := s.do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, &statusError{status: resp.StatusCode}
	}
	return resp.Body, nil
}

// Ask sends another node a request without a body, and returns the status and the body of the answer, which may have most bytes.
func (s *Server) Ask(ctx context.Context, method, path string, most int64) (status int, body []byte, err error) {
	req, err := s.request(ctx, method, path)
	if err != nil {
		return 0, nil, err
	}
	return s.read(req, most)
}
