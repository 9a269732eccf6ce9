package bench

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

// floorName is the name under which the test's binary acts as the minimal proxy.
const floorName = "bare-proxy"

// serveFloor is the smallest proxy in Go. Its arguments are the address to listen on, and the upstream's. It ends when its
// standard input is closed, and so with its parent.
func serveFloor(args []string) int {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64 // the default of 2 would measure how fast connections are made
	transport.DisableCompression = true
	upstream := &url.URL{Scheme: "http", Host: args[1]}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     transport,
		FlushInterval: -1, // at once
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		// Otherwise the server closes the request's body with the first byte of the answer, and the transport, which may be
		// about to see the body's end, gives up: some answers are cut off.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	}
	server := &http.Server{Addr: args[0], Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
