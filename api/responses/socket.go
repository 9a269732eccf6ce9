package responses

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

const socketIdle = 30 * time.Minute // how long a WebSocket may wait for the next request

// responseSocket is a WebSocket on which a client asks for one response after the other. A message with a request is read and answered by a
// call of its own, as if it were sent by POST, so it has the same limits, log lines and usage; a [socketWriter] turns the stream into
// messages. While a response is made, the next message is only read if it has begun to come; what follows it stays in the connection.
type responseSocket struct {
	call    *endpoint.Call // the request for the WebSocket
	conn    *websocket.Conn
	under   net.Conn
	writing context.Context //nolint:containedctx // of the connection: it lasts until the client disconnects, or all has been said
	ctx     context.Context //nolint:containedctx // of the requests: it also ends with the rights of the token
	cancel  context.CancelFunc
	waits   atomic.Bool // a message has begun to come, and isn't read to its end, so the answer to a ping isn't seen

	unstored unstoredResponse
}

type socketMessage struct {
	io.Reader

	whole chan struct{} // closed when it is read to its end
	err   error         // of the last read: a further one would be of the next message
}

func (m *socketMessage) Read(p []byte) (n int, _ error) {
	if m.err != nil {
		return 0, m.err
	}
	if n, m.err = m.Reader.Read(p); m.err != nil {
		close(m.whole)
	}
	return n, m.err
}

func (m *socketMessage) Close() error { return nil }

type socketKey struct{}

// socketOf returns the WebSocket on which a request came as a message; nil: it came by itself.
func socketOf(c *endpoint.Call) *responseSocket {
	s, _ := c.Request.Context().Value(socketKey{}).(*responseSocket)
	return s
}

// openSocket is GET /v1/responses, which asks for a WebSocket. The handler has looked at its origin.
func openSocket(c *endpoint.Call) error {
	if !strings.EqualFold(c.Request.Header.Get("Upgrade"), "websocket") {
		c.Writer.Header().Set("Allow", http.MethodPost)
		return translate.NewError(translate.KindMethodNotAllowed, "", "", "Unexpected endpoint or method. ("+c.Request.Method+" "+
			c.Request.URL.Path+") Responses are created by POST, or on a WebSocket, which the header Upgrade asks for.")
	}
	w := &takenOver{ResponseWriter: c.Writer, status: &c.Ledger.Summary.Status}
	c.Begun = true // even if it is refused, the library has answered
	conn, err := websocket.Accept(w, c.Request, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		c.Site.Log.Info("a WebSocket was refused", "request", c.ID, "error", err)
		return nil
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1) // each message is a body, which has its own limit
	s := &responseSocket{call: c, conn: conn, under: w.conn}
	var gone context.CancelFunc
	s.writing, gone = context.WithCancel(context.WithoutCancel(c.Request.Context()))
	s.ctx, s.cancel = context.WithCancel(c.Request.Context())
	defer s.unstored.forget()
	messages := make(chan *socketMessage)
	var others sync.WaitGroup
	others.Go(func() { s.receive(messages) })
	others.Go(s.probe)
	s.serve(messages)
	s.cancel()
	gone()
	others.Wait()
	return nil
}

type takenOver struct {
	http.ResponseWriter

	conn   net.Conn
	status *int
}

func (w *takenOver) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *takenOver) WriteHeader(status int) {
	*w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *takenOver) Hijack() (conn net.Conn, buffered *bufio.ReadWriter, err error) {
	w.conn, buffered, err = http.NewResponseController(w.ResponseWriter).Hijack()
	return w.conn, buffered, err
}

// receive waits for messages, and for the end of the connection, of which nobody else learns.
func (s *responseSocket) receive(messages chan<- *socketMessage) {
	defer s.cancel()
	for {
		_, reader, err := s.conn.Reader(s.writing)
		if err != nil {
			return
		}
		m := &socketMessage{Reader: reader, whole: make(chan struct{})}
		s.waits.Store(true)
		select {
		case messages <- m:
		case <-s.ctx.Done():
			return
		}
		select {
		case <-m.whole:
			s.waits.Store(false)
		case <-s.ctx.Done():
			return
		}
	}
}

// probe sends pings, so that proxies keep the connection open, and the end of a client that can't tell is noticed.
func (s *responseSocket) probe() {
	every := s.call.Site.KeepAlive
	timer := time.Tick(every)
	for {
		select {
		case <-timer:
		case <-s.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, max(every, 10*time.Second))
		err := s.conn.Ping(ctx)
		cancel()
		if err != nil && !s.waits.Load() {
			s.cancel()
			return
		}
	}
}

func (s *responseSocket) serve(messages <-chan *socketMessage) {
	idle := time.NewTimer(socketIdle)
	defer idle.Stop()
	for {
		var m *socketMessage
		select {
		case m = <-messages:
		case <-s.ctx.Done():
			if ended := access.Ended(s.ctx); ended != nil {
				s.close(websocket.StatusPolicyViolation, s.call.Error(ended).Message)
			}
			return
		case <-s.call.Site.Exiting:
		case <-s.call.Site.Replaced:
		case <-idle.C:
			s.close(websocket.StatusNormalClosure, "No request has come for "+socketIdle.String()+".")
			return
		}
		switch {
		case isClosed(s.call.Site.Exiting):
			s.close(websocket.StatusGoingAway, "The server is shutting down.")
			return
		case isClosed(s.call.Site.Replaced):
			s.close(websocket.StatusServiceRestart, "The server's configuration has changed: connect again.")
			return
		}
		if !s.answer(m) {
			return
		}
		idle.Reset(socketIdle)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// close says goodbye. A reason may have 123 bytes.
func (s *responseSocket) close(status websocket.StatusCode, reason string) {
	_ = s.conn.Close(status, strings.ToValidUTF8(reason[:min(len(reason), 123)], ""))
}

// answer answers a message. It reports whether the next one can be read.
func (s *responseSocket) answer(m *socketMessage) bool {
	w := &socketWriter{socket: s, header: http.Header{}}
	s.unstored.isContinued = false
	s.call.AnswerMessage(w, s.request(m))
	w.finish()
	if w.failed && s.unstored.isContinued {
		s.unstored.forget()
	}
	if s.ctx.Err() != nil {
		return false
	}
	n, err := io.Copy(io.Discard, io.LimitReader(m, s.call.Site.MaxBody+1)) // what a refused request has left
	_ = s.under.SetReadDeadline(time.Time{})                                // of the body
	if n > s.call.Site.MaxBody {
		s.close(websocket.StatusMessageTooBig, "The message is too large.")
	}
	return err == nil && n <= s.call.Site.MaxBody
}

func (s *responseSocket) request(m *socketMessage) *http.Request {
	r := s.call.Request.Clone(context.WithValue(logs.WithRequest(s.ctx, endpoint.NewID("req_")), socketKey{}, s))
	r.Method, r.Body, r.ContentLength = http.MethodPost, m, -1
	for name := range r.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			r.Header.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Upgrade", "Content-Encoding", "X-Request-Id"} {
		r.Header.Del(name)
	}
	return r
}

// checkMessage refuses a message that is no request for a response, or is one for the background, where nothing follows the client.
func checkMessage(body *jsonbody.Body) error {
	fields := body.Fields()
	switch kind := fields.Text("type"); {
	case fields.Err != nil:
		return fields.Err
	case kind != "response.create":
		return translate.BadValue("type", `must be "response.create", with the fields of a request beside it.`)
	case string(body.Value("background")) == "true":
		return translate.Refused("unsupported_parameter", "background", "can't be true on a WebSocket: send the request by POST.")
	default:
		return nil
	}
}

var errNoConnection = errors.New("the WebSocket is closed")

// socketWriter sends the answer to a request as messages of a WebSocket: each event of a stream is one, and an error with a status is the
// event "error". Comments and the mark at the end of a stream aren't sent: the connection has pings, and its end isn't that of the
// response.
type socketWriter struct {
	socket *responseSocket
	header http.Header
	status int
	rest   []byte // of a stream: what isn't a whole frame yet; else the body
	fault  []byte // the event "error" of a stream, unless the event that ends the response has it too
	failed bool   // the request has
}

func (w *socketWriter) Header() http.Header { return w.header }

func (w *socketWriter) WriteHeader(status int) { w.status = status }

func (w *socketWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	if !strings.HasPrefix(w.header.Get("Content-Type"), "text/event-stream") {
		return len(p), nil
	}
	sent := 0
	for {
		frame, _, isWhole := bytes.Cut(w.rest[sent:], []byte("\n\n"))
		if !isWhole {
			break
		}
		sent += len(frame) + len("\n\n")
		if err := w.sendFrame(frame); err != nil {
			return 0, err
		}
	}
	w.rest = append(w.rest[:0], w.rest[sent:]...)
	return len(p), nil
}

func (w *socketWriter) sendFrame(frame []byte) error {
	at := bytes.Index(frame, []byte("data: {"))
	if at < 0 {
		return nil
	}
	event := frame[at+len("data: "):]
	switch gjson.GetBytes(event, "type").Str {
	case "error": // a client would take it for the end of the response, and the end for that of the next
		w.fault = bytes.Clone(event)
		return nil
	case "response.failed":
		w.fault, w.failed = nil, true
	}
	return w.send(event)
}

func (w *socketWriter) send(event []byte) error {
	if w.socket.writing.Err() != nil {
		return errNoConnection
	}
	return w.socket.conn.Write(w.socket.writing, websocket.MessageText, event)
}

// finish sends the error of a request that failed without a response.
func (w *socketWriter) finish() {
	var body []byte
	switch {
	case w.fault != nil:
		w.status, body = http.StatusInternalServerError, w.fault
	case w.status >= http.StatusBadRequest:
		body = w.rest
	default:
		return
	}
	w.failed = true
	event := strconv.AppendInt([]byte(`{"type":"error","status":`), int64(w.status), 10)
	event = append(append(event, `,"error":`...), gjson.GetBytes(body, "error").Raw...)
	_ = w.send(append(event, '}'))
}

// FlushError is for [http.ResponseController]: nothing waits to be sent.
func (w *socketWriter) FlushError() error { return nil }

// SetReadDeadline and SetWriteDeadline are for [http.ResponseController].
func (w *socketWriter) SetReadDeadline(at time.Time) error { return w.socket.under.SetReadDeadline(at) }

// SetWriteDeadline ends the connection of a client that has stopped reading.
func (w *socketWriter) SetWriteDeadline(at time.Time) error {
	return w.socket.under.SetWriteDeadline(at)
}
