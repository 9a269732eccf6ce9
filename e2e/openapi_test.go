package e2e

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// served is the OpenAPI document that a server serves.
type served struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

func servedDocument(t *testing.T, s *harness.Server) *served {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(s.Get("/api/v1/openapi.json").Want(t, http.StatusOK).Body))
	if err != nil {
		t.Fatal(err)
	}
	d := &served{root: v.(map[string]any), compiler: jsonschema.NewCompiler()}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", v); err != nil {
		t.Fatal(err)
	}
	return d
}

// check checks the body of a successful response in JSON.
func (d *served) check(t *testing.T, method, path, body string) {
	t.Helper()
	pointer := "/paths/" + strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace(path) + "/" + strings.ToLower(method)
	schema, err := d.compiler.Compile("openapi.json#" + pointer + "/responses/200/content/application~1json/schema")
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, body)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s %s: %s isn't as the document says: %v", method, path, body, err)
	}
}

// The built program serves a document that has each endpoint of the native API which the documents name, and its responses are
// as that says.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := harness.Start(h, harness.Config{}).As(created(t, h, "--name", "operator", "--scopes", "admin"))
	d := servedDocument(t, s)
	paths := d.root["paths"].(map[string]any)
	endpoint := regexp.MustCompile("(GET|POST|PATCH|DELETE) (/api/v1/[^`\\s,;?]+)")
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	described := map[string]bool{}
	for path, item := range paths {
		for method := range item.(map[string]any) {
			described[strings.ToUpper(method)+" "+parameter.ReplaceAllString(path, "{}")] = true
		}
	}
	seen := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range endpoint.FindAllStringSubmatch(string(text), -1) {
			seen++
			if name := m[1] + " " + parameter.ReplaceAllString(strings.TrimRight(m[2], "."), "{}"); !described[name] && !strings.Contains(name, "…") {
				t.Errorf("%s names %s, which openapi.json lacks", file, name)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d endpoints were found", seen)
	}

	body := s.Post("/api/v1/chat", harness.NativeAsk(capital)).Want(t, http.StatusOK).Body
	d.check(t, http.MethodPost, "/api/v1/chat", body)
	for _, path := range []string{
		"/api/v1/models", "/api/v1/ps", "/api/v1/logs", "/api/v1/conversations", "/api/v1/settings", "/api/v1/health", "/api/v1/usage", "/api/v1/warm", "/api/v1/requests",
	} {
		d.check(t, http.MethodGet, path, s.Get(path).Want(t, http.StatusOK).Body)
	}
	d.check(t, http.MethodGet, "/api/v1/models/{key}", s.Get("/api/v1/models/"+harness.Model).Want(t, http.StatusOK).Body)
	d.check(t, http.MethodPost, "/api/v1/models/unload", s.Post("/api/v1/models/unload", harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK).Body)
}
