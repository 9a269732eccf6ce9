package fakemlx

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// logf writes a line of the real log to standard error. One write for each line keeps lines whole.
func logf(level, format string, a ...any) {
	now := time.Now()
	stamp := fmt.Sprintf("%s,%03d", now.Format("2006-01-02 15:04:05"), now.Nanosecond()/1e6)
	_, _ = fmt.Fprintf(os.Stderr, "%s - %s - %s\n", stamp, level, fmt.Sprintf(format, a...))
}

// exception is a Python exception: its class and its text.
type exception struct{ class, text string }

func raise(class, format string, a ...any) *exception {
	return &exception{class, fmt.Sprintf(format, a...)}
}

func (e *exception) Error() string { return e.text }

// line is the last line of the exception's traceback.
func (e *exception) line() string {
	if e.text == "" {
		return e.class
	}
	return e.class + ": " + e.text
}

// parseException is the exception that a script names: "ValueError: text".
func parseException(line, otherwise string) *exception {
	if line == "" {
		line = otherwise
	}
	class, text, ok := strings.Cut(line, ": ")
	if !ok || strings.Contains(class, " ") {
		return &exception{"RuntimeError", line}
	}
	return &exception{class, text}
}

// traceback is what Python prints of an exception, with the places in a few files.
func (e *exception) traceback(places ...string) string {
	var b strings.Builder
	b.WriteString("Traceback (most recent call last):\n")
	for _, place := range places {
		b.WriteString("  File " + place + "\n    ~~~~^^^^\n")
	}
	b.WriteString(e.line() + "\n")
	return b.String()
}

// inThread prints the end of the generation thread.
func (e *exception) inThread() {
	_, _ = os.Stderr.WriteString("Exception in thread Thread-1 (_generate):\n" + e.traceback(
		`"/usr/lib/python3.14/threading.py", line 1082, in _bootstrap_inner`,
		`"/usr/lib/python3.14/threading.py", line 1024, in run`,
		`"/usr/local/lib/python3.14/dist-packages/mlx_lm/server.py", line 686, in _generate`))
}

// inRequest prints the end of a connection.
func (e *exception) inRequest(client string) {
	rule := strings.Repeat("-", 40) + "\n"
	host, port, _ := strings.Cut(client, ":")
	_, _ = os.Stderr.WriteString(rule + fmt.Sprintf("Exception occurred during processing of request from ('%s', %s)\n", host, port) + e.traceback(
		`"/usr/lib/python3.14/socketserver.py", line 697, in process_request_thread`,
		`"/usr/lib/python3.14/http/server.py", line 491, in handle`,
		`"/usr/local/lib/python3.14/dist-packages/mlx_lm/server.py", line 1147, in do_POST`) + rule)
}
