package fakehub

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// front serves the hub: the API, the files' URLs, and the control of tests.
func (h *Hub) front() http.Handler {
	mux := http.NewServeMux()
	h.control(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		h.observed(w, request, func(w *observer, fault Fault, release <-chan struct{}) {
			switch path := request.URL.EscapedPath(); {
			case !h.admits(request):
				w.Header().Set("X-Error-Code", "GatedRepo")
				problem(w, http.StatusUnauthorized, "Access to this model is restricted. You must be authenticated to access it.")
			case path == "/api/models":
				h.search(w, request)
			case strings.HasPrefix(path, "/api/models/"):
				h.api(w, request)
			default:
				h.resolve(w, request, fault, release)
			}
		})
	})
	return mux
}

func (h *Hub) admits(request *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	return h.tokens == nil || h.tokens[token]
}

// resolve redirects to the file server, or sends the file if the hub is inline.
func (h *Hub) resolve(w *observer, request *http.Request, fault Fault, release <-chan struct{}) {
	r, rest := h.find(request.URL.EscapedPath())
	if r == nil || len(rest) < 3 || rest[0] != "resolve" || !r.knows(rest[1]) {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		problem(w, http.StatusNotFound, "Entry not found")
		return
	}
	h.mu.Lock()
	f := r.file(strings.Join(rest[2:], "/"))
	inline := h.inline
	h.mu.Unlock()
	if f == nil {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		problem(w, http.StatusNotFound, "Entry not found")
		return
	}
	if inline || !f.large() {
		h.send(w, request, f, fault, release)
		return
	}
	w.Header().Set("X-Repo-Commit", r.commit)
	w.Header().Set("X-Linked-Etag", f.tag())
	w.Header().Set("X-Linked-Size", strconv.FormatInt(f.listed, 10))
	http.Redirect(w, request, h.CDN+"/cdn/"+url.PathEscape(r.name)+"/"+(&url.URL{Path: f.path}).EscapedPath()+"?signature=secret", http.StatusFound)
}

// cdn serves the file server.
func (h *Hub) cdn(w http.ResponseWriter, request *http.Request) {
	h.observed(w, request, func(w *observer, fault Fault, release <-chan struct{}) {
		escaped, ok := strings.CutPrefix(request.URL.EscapedPath(), "/cdn/")
		name, path, _ := strings.Cut(escaped, "/")
		name, _ = url.PathUnescape(name)
		path, _ = url.PathUnescape(path)
		h.mu.Lock()
		var f *file
		if r := h.repos[strings.ToLower(name)]; ok && r != nil {
			f = r.file(path)
		}
		h.mu.Unlock()
		if f == nil {
			http.NotFound(w, request)
			return
		}
		h.send(w, request, f, fault, release)
	})
}

// observer records a response.
type observer struct {
	http.ResponseWriter
	seen Request
}

// WriteHeader implements [http.ResponseWriter].
func (o *observer) WriteHeader(status int) {
	o.seen.Status = status
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap supports [http.ResponseController].
func (o *observer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// observed serves a request, or simulates a fault, and records it.
func (h *Hub) observed(w http.ResponseWriter, request *http.Request, answer func(*observer, Fault, <-chan struct{})) {
	o := &observer{ResponseWriter: w, seen: Request{
		Host: request.Host, Path: request.URL.Path, Query: request.URL.RawQuery, Range: request.Header.Get("Range"),
		If: request.Header.Get("If-Range"), Token: request.Header.Get("Authorization"), Status: http.StatusOK, At: time.Now(),
	}}
	h.begin()
	defer func() { h.end(o.seen) }()
	fault, release := h.befalling(request.URL.Path)
	if fault.Delay > 0 && !pause(request, fault.Delay) {
		return
	}
	for name, value := range fault.Header {
		w.Header().Set(name, value)
	}
	switch {
	case fault.CutAtOnce:
		panic(http.ErrAbortHandler)
	case fault.StallAtOnce:
		stall(request, release)
	case fault.Status != 0:
		problem(o, fault.Status, http.StatusText(fault.Status))
	case fault.Redirect != "":
		to, whole := strings.CutSuffix(fault.Redirect, "*")
		if whole {
			to += request.URL.RequestURI()
		}
		http.Redirect(o, request, to, http.StatusFound) //nolint:gosec // chosen by the test
	default:
		answer(o, fault, release)
	}
}

func pause(request *http.Request, d time.Duration) bool {
	select {
	case <-request.Context().Done():
		return false
	case <-time.After(d):
		return true
	}
}

func stall(request *http.Request, release <-chan struct{}) {
	select {
	case <-request.Context().Done():
	case <-release:
	}
	panic(http.ErrAbortHandler)
}

// send sends a file or the requested range.
func (h *Hub) send(w *observer, request *http.Request, f *file, fault Fault, release <-chan struct{}) {
	size := f.content.Size()
	tag := f.tag()
	switch {
	case fault.NoTags:
		tag = ""
	case fault.OtherTags:
		tag = fmt.Sprintf(`"%d"`, time.Now().UnixNano())
	case fault.WeakTags:
		tag = "W/" + tag
	}
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	from, to, ranged := int64(0), size, false
	if !fault.NoRanges {
		w.Header().Set("Accept-Ranges", "bytes")
		if since := request.Header.Get("If-Range"); since == "" || since == tag {
			from, to, ranged = rangeOf(request.Header.Get("Range"), size)
		}
	}
	if from >= size && ranged {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	if !fault.Chunked {
		w.Header().Set("Content-Length", strconv.FormatInt(to-from+fault.Longer, 10))
	}
	w.seen.From, w.seen.To = from, from
	status := http.StatusOK
	if ranged {
		status = http.StatusPartialContent
		shown := from
		if fault.WrongRange {
			shown, from = 0, 0
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", shown, shown+to-from-1, size+fault.Longer))
	}
	h.begins(w.seen, from, to)
	w.WriteHeader(status)
	if request.Method == http.MethodHead {
		return
	}
	s := sender{w: w, request: request, fault: fault, release: release, content: f.content}
	s.send(from, to)
	for n := fault.Longer; n > 0 && s.sent == to-from; n-- {
		_, _ = w.Write([]byte{'x'})
	}
}

// rangeOf parses a Range header with one range.
func rangeOf(header string, size int64) (from, to int64, ok bool) {
	spec, isBytes := strings.CutPrefix(header, "bytes=")
	first, last, _ := strings.Cut(spec, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !isBytes || err != nil {
		return 0, size, false
	}
	to = size
	if n, err := strconv.ParseInt(last, 10, 64); err == nil {
		to = min(n+1, size)
	}
	return from, to, true
}

// sender sends the bytes of a file, and simulates faults.
type sender struct {
	w       *observer
	request *http.Request
	fault   Fault
	release <-chan struct{}
	content Content
	sent    int64
}

const block = 64 << 10

func (s *sender) send(from, to int64) {
	if f, ok := s.content.(disk); ok && s.isPlain() {
		n, _ := f.copyTo(s.w.ResponseWriter, from, to-from)
		s.w.seen.To += n
		s.sent = n
		return
	}
	buf := make([]byte, block)
	begun := time.Now()
	for at := from; at < to; {
		n := min(int64(len(buf)), to-at)
		for _, bound := range []int64{s.fault.Cut, s.fault.Stall} {
			if bound > 0 {
				n = min(n, bound-s.sent)
			}
		}
		if n <= 0 {
			_ = http.NewResponseController(s.w).Flush()
			if s.fault.Stall > 0 {
				stall(s.request, s.release)
			}
			panic(http.ErrAbortHandler)
		}
		if _, err := s.content.ReadAt(buf[:n], at); err != nil && err != io.EOF { //nolint:errorlint // io.ReaderAt returns a bare io.EOF
			panic(http.ErrAbortHandler)
		}
		if d := s.fault.Damage - 1; d >= at && d < at+n {
			buf[d-at] ^= 1
		}
		if _, err := s.w.Write(buf[:n]); err != nil {
			return
		}
		at, s.sent = at+n, s.sent+n
		s.w.seen.To += n
		if rate := s.fault.BytesPerSecond; rate > 0 {
			due := time.Duration(float64(s.sent) / float64(rate) * float64(time.Second))
			if !pause(s.request, due-time.Since(begun)) {
				return
			}
		}
	}
}

func (s *sender) isPlain() bool {
	return s.fault.Cut == 0 && s.fault.Stall == 0 && s.fault.Damage == 0 && s.fault.BytesPerSecond == 0
}
