// Package fakepypi is an index of Python packages for tests, as PEP 503 describes it, with wheels that the tests write.
package fakepypi

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Index is an index on a loopback address. It ends with its test.
type Index struct {
	// URL is the address of the list of projects, to be given to pip as the index.
	URL string

	mu     sync.Mutex
	files  map[string][]byte
	asked  []string
	faults map[string]http.HandlerFunc
}

// New starts an index with wheels.
func New(t testing.TB, wheels ...Wheel) *Index {
	t.Helper()
	x := &Index{files: map[string][]byte{}, faults: map[string]http.HandlerFunc{}}
	for _, w := range wheels {
		content, err := w.pack()
		if err != nil {
			t.Fatal(err)
		}
		x.Put(w.File(), content)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /simple/{project}/", x.project)
	mux.HandleFunc("GET /files/{name}", x.file)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	x.URL = server.URL + "/simple/"
	return x
}

// Put adds a file, such as an archive of sources.
func (x *Index) Put(file string, content []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files[file] = content
}

// Answer makes the index answer requests for a file in another way.
func (x *Index) Answer(file string, with http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faults[file] = with
}

// Spoil changes a file, but not its checksum.
func (x *Index) Spoil(file string) {
	content := slices.Clone(x.content(file))
	content[len(content)/2]++
	x.Answer(file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
}

// Asked returns the files that were requested.
func (x *Index) Asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.asked)
}

func (x *Index) content(file string) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.files[file]
}

var separators = regexp.MustCompile(`[-_.]+`)

// normal returns the name of a project in the index's addresses.
func normal(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

func (x *Index) project(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var links strings.Builder
	for file, content := range x.files {
		project, _, _ := strings.Cut(file, "-")
		if normal(project) == r.PathValue("project") {
			fmt.Fprintf(&links, "<a href=\"/files/%s#sha256=%x\">%s</a><br>\n", file, sha256.Sum256(content), file)
		}
	}
	if links.Len() == 0 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<!DOCTYPE html><html><body>\n%s</body></html>\n", &links)
}

func (x *Index) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	x.mu.Lock()
	x.asked = append(x.asked, name)
	fault := x.faults[name]
	x.mu.Unlock()
	content := x.content(name)
	switch {
	case fault != nil:
		fault(w, r)
	case content == nil:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(content)
	}
}
