package fakehub

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// control lets tests in other processes control a hub, with POST requests and JSON:
//
//	/_hub/fault      {a Fault}
//	/_hub/mend
//	/_hub/cut        breaks all connections
//	/_hub/tokens     ["token", …]
//	/_hub/add        {"repo": "a/b", "random": {"path": size, …}, "text": {"path": "…"}, "disk": {"path": "file"}, "seed": 1}
//	/_hub/describe   {"repo": "a/b", "card": {a Card}}
//	/_hub/lie        {"repo": "a/b", "path": "file", "size": 5, "sha256": "…"}
//	/_hub/forget     empties the list of requests
//
// and GET /_hub/requests, GET /_hub/sum?repo=a/b&path=file.
func (h *Hub) control(mux *http.ServeMux) {
	post(mux, "fault", func(f Fault) error { h.Fault(f); return nil })
	post(mux, "mend", func(struct{}) error { h.Mend(); return nil })
	mux.HandleFunc("POST /_hub/cut", func(_ http.ResponseWriter, request *http.Request) { h.cutBut(request.RemoteAddr) })
	post(mux, "forget", func(struct{}) error { h.Forget(); return nil })
	post(mux, "tokens", func(tokens []string) error { h.RequireToken(tokens...); return nil })
	post(mux, "add", h.addDescribed)
	post(mux, "describe", func(d describedCard) error { h.Describe(d.Repo, d.Card); return nil })
	post(mux, "lie", func(l lie) error {
		if l.Size != nil {
			h.Lie(l.Repo, l.Path, *l.Size)
		}
		if l.SHA256 != "" {
			h.LieSum(l.Repo, l.Path, l.SHA256)
		}
		return nil
	})
	mux.HandleFunc("GET /_hub/requests", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, h.Requests()) })
	mux.HandleFunc("GET /_hub/sum", func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		h.mu.Lock()
		defer h.mu.Unlock()
		if r := h.repos[strings.ToLower(query.Get("repo"))]; r != nil {
			if f := r.file(query.Get("path")); f != nil {
				writeJSON(w, map[string]string{"sha256": f.sha256, "size": strconv.FormatInt(f.content.Size(), 10)})
				return
			}
		}
		http.NotFound(w, request)
	})
}

func post[T any](mux *http.ServeMux, name string, do func(T) error) {
	mux.HandleFunc("POST /_hub/"+name, func(w http.ResponseWriter, request *http.Request) {
		var value T
		if request.ContentLength != 0 {
			if err := json.NewDecoder(request.Body).Decode(&value); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		if err := do(value); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
}

type lie struct {
	Repo   string `json:"repo"`
	Path   string `json:"path"`
	Size   *int64 `json:"size"`
	SHA256 string `json:"sha256"`
}

type describedCard struct {
	Repo string `json:"repo"`
	Card Card   `json:"card"`
}

type described struct {
	Repo   string            `json:"repo"`
	Seed   uint64            `json:"seed"`
	Random map[string]int64  `json:"random"`
	Text   map[string]string `json:"text"`
	Disk   map[string]string `json:"disk"`
}

func (h *Hub) addDescribed(d described) error {
	files := Files{}
	for path, size := range d.Random {
		files[path] = Random(d.Seed+uint64(len(path)), size)
	}
	for path, text := range d.Text {
		files[path] = Text(text)
	}
	for path, from := range d.Disk {
		content, err := Disk(from)
		if err != nil {
			return err
		}
		files[path] = content
	}
	if strings.Count(d.Repo, "/") != 1 || len(files) == 0 {
		return fmt.Errorf("a repository %q with %d files can't be added", d.Repo, len(files))
	}
	h.Add(d.Repo, files)
	return nil
}

// AddFolder adds every <publisher>/<repository> below a folder.
func (h *Hub) AddFolder(dir string) error {
	repos := map[string]Files{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		parts := strings.SplitN(filepath.ToSlash(rel), "/", 3)
		if len(parts) < 3 {
			return nil
		}
		content, err := Disk(path)
		if err != nil {
			return err
		}
		name := parts[0] + "/" + parts[1]
		if repos[name] == nil {
			repos[name] = Files{}
		}
		repos[name][parts[2]] = content
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the models in %s: %w", dir, err)
	}
	for name, files := range repos {
		h.Add(name, files)
	}
	return nil
}

// Process configures a hub that is a process of its own.
type Process struct {
	Address string // to listen on
	Dir     string // folder of <publisher>/<repository>/<files> to serve; may be empty
	Fault   string // initial fault in JSON; may be empty
	Record  string // file to which each request for a file is appended when it begins; may be empty
}

// Main runs the hub: it prints its address, and serves until standard input ends. It is complete before the first request, so
// that a restarted process continues where a killed one stopped.
func (p Process) Main() error {
	h := newHub()
	if p.Dir != "" {
		if err := h.AddFolder(p.Dir); err != nil {
			return err
		}
	}
	if p.Fault != "" {
		var f Fault
		if err := json.Unmarshal([]byte(p.Fault), &f); err != nil {
			return fmt.Errorf("the fault: %w", err)
		}
		h.Fault(f)
	}
	if p.Record != "" {
		record, err := os.OpenFile(p.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer record.Close()
		h.record = json.NewEncoder(record)
	}
	if err := h.open(p.Address); err != nil {
		return err
	}
	defer h.Close()
	if _, err := fmt.Println(h.URL); err != nil {
		return err
	}
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			return nil //nolint:nilerr // the end of standard input ends the hub
		}
	}
}
