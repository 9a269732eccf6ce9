package fakemlx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// server is the HTTP side of a process, as Python's http.server is: each connection has one request.
type server struct {
	*process
	listener net.Listener
	port     int

	mu    sync.Mutex
	count int // generating requests for more than one token
}

// listen binds the port, tells that the process has started, and reports success.
func (v *server) listen(refuse bool) bool {
	v.port = v.args.port
	l, err := net.Listen("tcp", net.JoinHostPort(v.args.host, strconv.Itoa(v.port)))
	if err == nil && refuse {
		_ = l.Close()
	}
	if err != nil || refuse {
		v.TellStarted(v.port, variables...)
		_, _ = os.Stderr.WriteString(raise("OSError", "[Errno %d] Address already in use", int(syscall.EADDRINUSE)).traceback(
			`"/usr/local/bin/mlx_lm.server", line 8, in <module>`,
			`"/usr/local/lib/python3.14/dist-packages/mlx_lm/server.py", line 1680, in _run_http_server`,
			`"/usr/lib/python3.14/socketserver.py", line 478, in server_bind`))
		return false
	}
	v.listener, v.port = l, l.Addr().(*net.TCPAddr).Port
	v.TellStarted(v.port, variables...)
	_, _ = os.Stderr.WriteString("/usr/local/lib/python3.14/dist-packages/mlx_lm/server.py:1692: UserWarning: mlx_lm.server is not " +
		"recommended for production as it only implements basic security checks.\n  warnings.warn(\n")
	logf("INFO", "Starting httpd at %s on port %d...", v.args.host, v.args.port)
	return true
}

// variables are the beginnings of those that the journal has values of.
var variables = []string{"HF_", "TRANSFORMERS_", "PYTHON", "MLX", "TOKENIZERS_", "PATH"}

// serve takes connections for good.
func (v *server) serve() {
	for {
		c, err := v.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			select {}
		}
		if err == nil {
			go v.handle(c)
		}
	}
}

func (v *server) close() { _ = v.listener.Close() }

// connection is a client's connection, with its one request.
type connection struct {
	*server
	net.Conn
	in      *bufio.Reader
	request string // the request line
	method  string
	path    string
	header  textproto.MIMEHeader
	created int64
}

// handle reads a request and answers it. Whatever fails closes the connection, with a traceback.
func (v *server) handle(conn net.Conn) {
	c := &connection{server: v, Conn: conn, in: bufio.NewReader(conn), created: time.Now().Unix()}
	defer func() {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_ = conn.Close()
	}()
	reader := textproto.NewReader(c.in)
	var err error
	if c.request, err = reader.ReadLine(); err != nil {
		return
	}
	words := strings.Fields(c.request)
	if c.header, err = reader.ReadMIMEHeader(); err != nil || len(words) != 3 {
		return
	}
	c.method, c.path = words[0], words[1]
	if err = c.answer(); err == nil {
		return
	}
	var e *exception
	if !errors.As(err, &e) {
		e = raise("BrokenPipeError", "[Errno 32] Broken pipe")
	}
	e.inRequest(conn.RemoteAddr().String())
}

func (c *connection) answer() error {
	switch c.method {
	case http.MethodPost:
		return c.post()
	case http.MethodGet:
		return c.get()
	case http.MethodOptions:
		c.tell("", 0)
		return c.send(http.StatusNoContent, "")
	}
	c.tell("", 0)
	return c.unsupported()
}

// tell records the request.
func (c *connection) tell(body string, n int) {
	c.Tell(fakekit.Event{Kind: fakekit.Request, N: n, Method: c.method, Path: c.path, Header: http.Header(c.header), Body: body})
}

func (c *connection) get() error {
	c.tell("", 0)
	rule := c.uses.Other(c.script().Rules, c.path, "")
	if rule.Gate != "" {
		c.Tell(fakekit.Event{Kind: fakekit.Gated, Gate: rule.Gate})
		for !c.IsOpen(rule.Gate) {
			time.Sleep(fakekit.PollEvery)
		}
	}
	time.Sleep(rule.FirstDelay)
	switch {
	case rule.Status != 0:
		return c.send(rule.Status, rule.Body)
	case strings.HasPrefix(c.path, "/v1/models"):
		return c.models()
	case c.path == "/health":
		return c.send(http.StatusOK, `{"status": "ok"}`)
	}
	return c.send(http.StatusNotFound, "Not Found")
}

// models answers with the model given by --model. The real one has those of the Hugging Face cache, too, and nothing at all if there is no
// such cache.
func (c *connection) models() error {
	data := []any{}
	if _, err := os.Stat(c.args.model); c.args.model != "" && err == nil {
		path, err := filepath.Abs(c.args.model)
		if err == nil {
			data = append(data, record{{"id", path}, {"object", "model"}, {"created", int(c.created)}})
		}
	}
	return c.send(http.StatusOK, dumps(record{{"object", "list"}, {"data", data}}))
}

// endpoints are those that generate, with the kind of their answers.
var endpoints = map[string]bool{"/v1/completions": false, "/v1/chat/completions": true, "/chat/completions": true}

func (c *connection) post() error {
	chat, ok := endpoints[c.path]
	if !ok {
		c.tell("", 0)
		return c.send(http.StatusNotFound, "Not Found")
	}
	length := c.header.Get("Content-Length")
	if length == "" {
		c.tell("", 0)
		return c.send(http.StatusLengthRequired, dumps(record{{"error", "Content-Length header is required"}}))
	}
	n, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil {
		c.tell("", 0)
		return c.send(http.StatusBadRequest, dumps(record{{"error", "Invalid Content-Length header"}}))
	}
	raw := make([]byte, max(0, n))
	if _, err := io.ReadFull(c.in, raw); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	if !utf8.Valid(raw) {
		c.tell(string(raw), 0)
		return raise("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte")
	}
	decoded, err := loads(raw)
	if err != nil {
		c.tell(string(raw), 0)
		logf("ERROR", "JSONDecodeError: %v - Raw body: %s", err, raw)
		return c.send(http.StatusBadRequest, dumps(record{{"error", fmt.Sprintf("Invalid JSON in request body: %v", err)}}))
	}
	body, ok := decoded.(map[string]any)
	if !ok {
		c.tell(string(raw), 0)
		logf("ERROR", "Invalid Request Body: %s", raw)
		return c.send(http.StatusBadRequest, dumps(record{{"error", "Request should be a JSON dictionary"}}))
	}
	return c.generate(chat, string(raw), body)
}

// logAccess writes the request's line of the log.
func (c *connection) logAccess(status int) {
	_, _ = fmt.Fprintf(os.Stderr, "127.0.0.1 - - [%s] \"%s\" %d -\n", time.Now().Format("02/Jan/2006 15:04:05"), c.request, status)
}

// head is the status line and the header of an answer, without the empty line at its end.
func (c *connection) head(status int, fields ...string) []byte {
	c.logAccess(status)
	b := fmt.Appendf(nil, "HTTP/1.0 %d %s\r\nServer: BaseHTTP/0.6 Python/3.14.8\r\nDate: %s\r\n", status, http.StatusText(status),
		time.Now().UTC().Format(http.TimeFormat))
	for _, f := range fields {
		b = append(b, f+"\r\n"...)
	}
	return b
}

var cors = []string{"Access-Control-Allow-Origin: *", "Access-Control-Allow-Methods: *", "Access-Control-Allow-Headers: *"}

// send writes an answer without a length, as all are that generate nothing.
func (c *connection) send(status int, body string) error {
	head := c.head(status, append([]string{"Content-type: application/json"}, cors...)...)
	_, err := c.Write([]byte(string(head) + "\r\n" + body))
	return err
}

// unsupported answers a method that the real one doesn't know.
func (c *connection) unsupported() error {
	text := fmt.Sprintf("Unsupported method (&#x27;%s&#x27;)", c.method)
	body := "<!DOCTYPE HTML>\n<html lang=\"en\">\n    <head>\n        <meta charset=\"utf-8\">\n        <style type=\"text/css\">\n" +
		"            :root {\n                color-scheme: light dark;\n            }\n        </style>\n" +
		"        <title>Error response</title>\n    </head>\n    <body>\n        <h1>Error response</h1>\n" +
		"        <p>Error code: 501</p>\n        <p>Message: " + text + ".</p>\n" +
		"        <p>Error code explanation: 501 - Server does not support this operation.</p>\n    </body>\n</html>\n"
	head := c.head(http.StatusNotImplemented, "Connection: close", "Content-Type: text/html;charset=utf-8",
		"Content-Length: "+strconv.Itoa(len(body)))
	head = []byte(strings.Replace(string(head), "501 Not Implemented", fmt.Sprintf("501 Unsupported method ('%s')", c.method), 1))
	if c.method == http.MethodHead {
		body = ""
	}
	_, err := c.Write([]byte(string(head) + "\r\n" + body))
	return err
}
