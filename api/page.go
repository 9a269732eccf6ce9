package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/web"
)

// Root is what a site answers at the path /, and at those of the page's parts: the same for everybody, so without a token and a node.
type Root struct {
	Page   bool // the page for people
	Ollama bool // what Ollama answers there, by which its clients recognize it. Browsers get the page nevertheless, if there is one
}

// Has reports whether a request is for the path / of a site that answers it, or for a part of its page.
func (t Root) Has(r *http.Request) bool {
	isHere := (t.Page || t.Ollama) && r.URL.Path == "/" || t.Page && web.HasPart(r.URL.Path)
	return isHere && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// ServeHTTP answers a request that it has.
func (t Root) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if web.HasPart(r.URL.Path) {
		serveFile(w, r, web.Part(r.URL.Path))
		return
	}
	if t.Ollama {
		w.Header().Add("Vary", "Accept")
	}
	if !t.Ollama || t.Page && strings.Contains(r.Header.Get("Accept"), "text/html") {
		page := web.Get() // what it shows, it gets from the API
		h := w.Header()
		h.Set("Content-Security-Policy", page.Policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", permissions)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		serveFile(w, r, &page.File)
		return
	}
	const text = "Ollama is running"
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text))
	}
}

// permissions are what the page doesn't need of a browser.
const permissions = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"

func serveFile(w http.ResponseWriter, r *http.Request, file *web.File) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	body, coding := file.Plain, ""
	switch accepted := codings(r); {
	case accepted["zstd"]:
		body, coding = file.Zstd, "zstd"
	case accepted["gzip"]:
		body, coding = file.Gzip, "gzip"
	}
	tag := `"` + file.Digest + `"`
	if coding != "" {
		tag = `"` + file.Digest + "-" + coding + `"`
	}
	h.Set("Etag", tag)
	for known := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	h.Set("Content-Type", file.Type)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) //nolint:gosec // it is embedded in the program
	}
}

// codings are the encodings that a client accepts. One with a quality of 0 isn't.
func codings(r *http.Request) map[string]bool {
	accepted := map[string]bool{}
	for _, line := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(part, ";")
			quality, isGiven := strings.CutPrefix(strings.ToLower(strings.TrimSpace(params)), "q=")
			q, err := strconv.ParseFloat(strings.TrimSpace(quality), 64)
			accepted[strings.ToLower(strings.TrimSpace(name))] = !isGiven || err == nil && q > 0
		}
	}
	return accepted
}
