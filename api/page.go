package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/web"
)

// IsPage reports whether a request is for the page: for the path / of a site that has it.
func (a *API) IsPage(r *http.Request) bool { return a.Page && IsPage(r) }

// IsPage reports whether a request would be for the page, if its site has it.
func IsPage(r *http.Request) bool {
	return r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// permissions are what the page doesn't need of a browser.
const permissions = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"

// ServePage answers a request with the page. It is the same for everybody, so it needs no token and no node: what it shows, it gets
// from the API.
func ServePage(w http.ResponseWriter, r *http.Request) {
	page := web.Get()
	h := w.Header()
	h.Set("Content-Security-Policy", page.Policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", permissions)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")

	body, coding := page.Plain, ""
	switch accepted := codings(r); {
	case accepted["zstd"]:
		body, coding = page.Zstd, "zstd"
	case accepted["gzip"]:
		body, coding = page.Gzip, "gzip"
	}
	tag := `"` + page.Digest + `"`
	if coding != "" {
		tag = `"` + page.Digest + "-" + coding + `"`
	}
	h.Set("Etag", tag)
	if isKnown(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
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

// isKnown reports whether the client has what a tag names.
func isKnown(r *http.Request, tag string) bool {
	for known := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == tag {
			return true
		}
	}
	return false
}
