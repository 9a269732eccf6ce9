package responses

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"
)

// socketWriter sends the answer to a request as messages of a WebSocket: each event of a stream is one, and an error with a status is the event
// "error". Comments and the mark at the end of a stream aren't sent: the connection has pings, and its end isn't that of the response.
type socketWriter struct {
	socket *responseSocket
	header http.Header
	status int
	rest   []byte // of a stream: what isn't a whole frame yet; else the body
	fault  []byte // the event "error" of a stream, unless the event that ends the response has it too
	failed bool   // the request has
}

// Header implements [http.ResponseWriter].
func (w *socketWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *socketWriter) WriteHeader(status int) { w.status = status }

// Write implements [http.ResponseWriter].
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
