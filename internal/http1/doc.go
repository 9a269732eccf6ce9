// Package http1 sends requests to one server over HTTP/1.1, from the caller's goroutine. [net/http.Transport] has two goroutines for
// each connection, and each request changes between them and its own several times. That costs more than all else in a short
// request.
package http1
