// Package http1 sends requests to one server over HTTP/1.1, from the caller's goroutine. [net/http.Transport] has two goroutines for
// each connection, and each request changes between them and its own several times. That costs more than all else in a short
// request: with it, through the whole program, small chats take 1.4 to 1.6 times as long and 1.3 to 1.5 times the processor time, and
// streams at full speed 1.2 times the processor time.
package http1
