package api

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/openapi"
)

// nativePrefix begins the paths that the document describes.
const nativePrefix = "/api/v1/"

var document = sync.OnceValues(func() (*openapi.Document, error) { return openapi.Parse(openAPI) })

// The document is valid by the schema that the OpenAPI Initiative publishes for documents of version 3.1, and its schemas by JSON
// Schema's own.
func TestOpenAPI_IsValid(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed := func(text []byte) any {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", parsed(published)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	root := parsed(openAPI).(map[string]any)
	if err := schema.Validate(root); err != nil {
		t.Error(err)
	}
	meta, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range root["components"].(map[string]any)["schemas"].(map[string]any) {
		if err := meta.Validate(s); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
	}
	delete(root["info"].(map[string]any), "version")
	if schema.Validate(root) == nil {
		t.Error("a document without a version passes")
	}
}

// Each route of the native API is described, with its scope, and nothing else is.
func TestOpenAPI_EveryRoute(t *testing.T) {
	t.Parallel()
	d, err := document()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for _, o := range d.Operations() {
		described[o.Method+" "+pattern(o.Path)] = o.Scope
	}
	for _, r := range routes {
		if !strings.HasPrefix(r.Path, nativePrefix) {
			continue
		}
		name := r.Method + " " + r.Path
		scope, known := described[name]
		if want := string(r.Scope); !known || scope != want && (r.Scope != endpoint.Anyone || scope != "anyone") {
			t.Errorf("openapi.json: %s needs the scope %q, and is described with %q", name, want, scope)
		}
		delete(described, name)
	}
	for name := range described {
		t.Errorf("openapi.json: there is no route %s", name)
	}
}

// pattern turns a path with a parameter in braces into the path of a route.
func pattern(path string) string {
	before, rest, open := strings.Cut(path, "{")
	if !open {
		return path
	}
	_, after, _ := strings.Cut(rest, "}")
	if after == "" && slices.ContainsFunc(routes, func(r endpoint.Route) bool { return r.Path == before }) {
		return before
	}
	return before + "*" + after
}

// checked passes requests on to a handler, and checks those of the native API and their responses against the document.
func checked(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	d, err := document()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := d.Find(r.Method, r.URL.Path)
		if o == nil {
			h.ServeHTTP(w, r)
			return
		}
		sent, got := &copied{}, &watched{ResponseWriter: w, status: http.StatusOK}
		isPlain := r.Header.Get("Content-Encoding") == ""
		r.Body = teed{io.TeeReader(r.Body, sent), r.Body}
		h.ServeHTTP(got, r)
		if got.cut || got.body.full || r.Context().Err() != nil { // the client has disconnected, and perhaps nothing was written
			return
		}
		kind := got.Header().Get("Content-Type")
		if err := o.CheckResponse(got.status, kind, got.body.text); err != nil && r.Method != http.MethodHead {
			t.Errorf("%s %s: the response %d %.2000s isn't as openapi.json says: %v", r.Method, r.URL.Path, got.status, got.body.text, err)
		}
		if got.status < 300 {
			succeeded.Store(o.ID, true)
		}
		if got.status < 300 && isPlain && !sent.full {
			if err := o.CheckRequest(bytes.TrimPrefix(sent.text, []byte("\ufeff"))); err != nil {
				t.Errorf("%s %s: the request %s was accepted, but isn't as openapi.json says: %v", r.Method, r.URL.Path, sent.text, err)
			}
		}
	})
}

// copied keeps what is written, up to a bound.
type copied struct {
	text []byte
	full bool
}

const mostCopied = 1 << 20 // bytes

func (c *copied) Write(p []byte) (int, error) {
	if c.full = c.full || len(c.text)+len(p) > mostCopied; !c.full {
		c.text = append(c.text, p...)
	}
	return len(p), nil
}

// teed is a body that is copied while it is read.
type teed struct {
	io.Reader
	io.Closer
}

// watched is a response that is copied while it is written.
type watched struct {
	http.ResponseWriter
	status int
	body   copied
	cut    bool // the client didn't get all of it
}

func (r *watched) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *watched) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *watched) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	_, _ = r.body.Write(p[:n])
	r.cut = r.cut || err != nil
	return n, err
}

// The check itself fails where it should: a field that the document doesn't have, a wrong type, an unknown event.
func TestOpenAPI_IsStrict(t *testing.T) {
	t.Parallel()
	d, err := document()
	if err != nil {
		t.Fatal(err)
	}
	const stream = "text/event-stream"
	for name, tt := range map[string]struct{ method, path, kind, body string }{
		"a new field":      {"GET", "/api/v1/health", "application/json", `{"status":"ok","more":1}`},
		"a wrong value":    {"GET", "/api/v1/warm", "application/json", `{"states":[{"tokens":-1}]}`},
		"no field":         {"GET", "/api/v1/tokens", "application/json", `{}`},
		"not JSON":         {"GET", "/api/v1/tokens", "text/html", `{}`},
		"an unknown event": {"POST", "/api/v1/chat", stream, "event: nonsense\ndata: {\"type\":\"nonsense\"}\n\n"},
		"another name":     {"POST", "/api/v1/chat", stream, "event: message.end\ndata: {\"type\":\"message.start\"}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d.Find(tt.method, tt.path).CheckResponse(200, tt.kind, []byte(tt.body)) == nil {
				t.Error("it passes")
			}
		})
	}
}

func TestOpenAPI_IsServed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("GET", "/api/v1/openapi.json", ""); got.status != 200 || got.body != string(openAPI) {
		t.Errorf("%d %.100s", got.status, got.body)
	}
}

// succeeded has the ids of the operations that were seen to succeed.
var succeeded sync.Map

// unseen returns the operations that no test has had succeed, so whose responses are unchecked.
func unseen() (ids []string) {
	d, err := document()
	if err != nil {
		return nil // its test has failed
	}
	for _, o := range d.Operations() {
		if _, seen := succeeded.Load(o.ID); !seen {
			ids = append(ids, o.ID)
		}
	}
	return ids
}
