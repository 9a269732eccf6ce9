package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/node"
)

// serveWithHub is the API over a node that downloads from a fake hub, which has acme/tiny-GGUF in two quantizations: the
// shipped model under two names.
func serveWithHub(t *testing.T) (*server, *fakehub.Hub) {
	t.Helper()
	server := fakehub.Start(t)
	model, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	server.Add("acme/tiny-GGUF", fakehub.Files{"tiny-Q4_K_M.gguf": fakehub.Bytes(model), "more/tiny-Q8_0.gguf": fakehub.Bytes(model)})
	s := serve(t, nil, func(c *endpoint.Config, s *node.Settings) {
		s.Hubs = []hub.Config{{URL: server.URL}}
		c.KeepAlive = 20 * time.Millisecond
	})
	return s, server
}

const (
	downloadPath = "/api/v1/models/download"
	statusPath   = downloadPath + "/status/"
)

// start starts a download and gives its id.
func (s *server) start(model string) string {
	s.t.Helper()
	a := s.do("POST", downloadPath, fmt.Sprintf(`{"model":%q}`, model))
	id := gjson.Get(a.body, "job_id").Str
	if a.status != http.StatusOK || !regexp.MustCompile(`^job_[0-9a-f]{10}$`).MatchString(id) {
		s.t.Fatalf("%d %s", a.status, a.body)
	}
	return id
}

// events reads a job's events to their end: their names, and their data.
func (s *server) events(id string) (names []string, data []gjson.Result, whole string) {
	s.t.Helper()
	a := s.do("GET", downloadPath+"/"+id+"/events", "")
	if kind := a.header.Get("Content-Type"); a.status != http.StatusOK || kind != endpoint.TypeEvents {
		s.t.Fatalf("%d %s %s", a.status, kind, a.body)
	}
	names, data = readEvents(a.body)
	return names, data, a.body
}

// readEvents returns the names and the data of the events in a stream.
func readEvents(stream string) (names []string, data []gjson.Result) {
	for line := range strings.Lines(stream) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, gjson.Parse(text))
		}
	}
	return names, data
}

func keysOf(v gjson.Result) []string {
	var keys []string
	v.ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, key.Str)
		return true
	})
	return keys
}

func TestDownload_HasTheSpecificationsFields(t *testing.T) {
	t.Parallel()
	s, server := serveWithHub(t)
	server.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	started := s.do("POST", downloadPath, `{"model":"acme/tiny-GGUF"}`)
	if diff := cmp.Diff([]string{"job_id", "status", "total_size_bytes", "started_at"}, keysOf(gjson.Parse(started.body))); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	id := gjson.Get(started.body, "job_id").Str
	var now answer
	for now = s.do("GET", statusPath+id, ""); gjson.Get(now.body, "downloaded_bytes").Int() < 1<<20; now = s.do("GET", statusPath+id, "") {
		if t.Context().Err() != nil {
			t.Fatal(now.body)
		}
	}
	common := []string{"job_id", "status", "total_size_bytes", "downloaded_bytes", "started_at"}
	want := func(a answer, status string, fields ...string) {
		t.Helper()
		job := gjson.Parse(a.body)
		if diff := cmp.Diff(append(slices.Clip(common), fields...), keysOf(job)); diff != "" || job.Get("status").Str != status {
			t.Errorf("%s (-want +got):\n%s%s", status, diff, a.body)
		}
	}
	want(now, "downloading", "bytes_per_second", "estimated_completion", "model")
	want(s.do("POST", downloadPath+"/"+id+"/pause", ""), "paused", "model")
	want(s.do("POST", downloadPath+"/"+id+"/cancel", ""), "failed", "model", "error")
	if e := gjson.Get(s.do("GET", statusPath+id, "").body, "error"); e.Get("code").Str != "cancelled" || e.Get("message").Str == "" || e.Get("type").Str == "" {
		t.Errorf("the error is %s", e)
	}
	server.Mend()
	s.do("POST", downloadPath+"/"+id+"/resume", "")
	s.events(id)
	done := s.do("GET", statusPath+id, "")
	if short := s.do("GET", downloadPath+"/"+id, ""); short.body != done.body {
		t.Errorf("without status/, it is %s", short.body)
	}
	want(done, "completed", "completed_at", "model")
	if late := s.do("POST", downloadPath+"/"+id+"/cancel", ""); late.status != http.StatusConflict || !strings.Contains(late.body, "`lmcaddy rm acme/tiny`") {
		t.Errorf("cancelling what is complete: %d %s", late.status, late.body)
	}
	for _, field := range []string{"started_at", "completed_at"} {
		if at, err := time.Parse(time.RFC3339, gjson.Get(done.body, field).Str); err != nil || time.Since(at) > time.Hour || !strings.HasSuffix(gjson.Get(done.body, field).Str, "Z") {
			t.Errorf("%s: %v %v", field, at, err)
		}
	}
	if again := s.do("POST", downloadPath, `{"model":"acme/tiny-GGUF"}`); again.status != http.StatusOK || again.body != `{"status":"already_downloaded"}` {
		t.Errorf("again: %d %s", again.status, again.body)
	}
}

func TestDownload_EventsBeginAtOnceAndEndWithTheJob(t *testing.T) {
	t.Parallel()
	s, server := serveWithHub(t)
	server.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	id := s.start(server.URL + "/acme/tiny-GGUF")
	resp, err := s.Client().Get(s.URL + downloadPath + "/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	from, whole := bufio.NewReader(resp.Body), ""
	for !strings.Contains(whole, "event: ") || !strings.Contains(whole, ":\n\n") { // the first event, and what keeps the connection alive
		line, err := from.ReadString('\n')
		if whole += line; err != nil {
			t.Fatal(err, whole)
		}
	}
	server.Mend()
	rest, err := io.ReadAll(from)
	if whole += string(rest); err != nil {
		t.Fatal(err, whole)
	}
	names, data := readEvents(whole)
	if len(names) < 2 || names[0] != "download.progress" || names[len(names)-1] != "download.completed" || len(names) != len(data) {
		t.Fatal(whole)
	}
	for i, d := range data {
		if d.Get("type").Str != names[i] || d.Get("job.job_id").Str != id || d.Get("job.model").Str != "acme/tiny" {
			t.Errorf("%s: %s", names[i], d)
		}
	}
	if names, _, _ := s.events(id); len(names) != 1 {
		t.Errorf("of a job at its end: %v", names)
	}
	if list := s.do("GET", downloadPath, ""); gjson.Get(list.body, "jobs.#").Int() != 1 {
		t.Error(list.body)
	}
}

func TestDownload_TheNewestIsListedFirst(t *testing.T) {
	t.Parallel()
	s, server := serveWithHub(t)
	if list := s.do("GET", downloadPath, ""); list.body != `{"jobs":[]}` {
		t.Error(list.body)
	}
	var want []string
	for _, quantization := range []string{"Q4_K_M", "Q8_0"} {
		a := s.do("POST", downloadPath, fmt.Sprintf(`{"model":%q,"quantization":%q}`, server.URL+"/acme/tiny-GGUF", quantization))
		id := gjson.Get(a.body, "job_id").Str
		s.events(id)
		want = append([]string{id}, want...)
	}
	var got, keys []string
	for _, j := range gjson.Get(s.do("GET", downloadPath, "").body, "jobs").Array() {
		got, keys = append(got, j.Get("job_id").Str), append(keys, j.Get("model").Str)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"acme/tiny@q8_0", "acme/tiny@q4_k_m"}, keys); diff != "" { // the folder more/ is none of the key
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDownload_Refuses(t *testing.T) {
	t.Parallel()
	s, server := serveWithHub(t)
	server.Fault(fakehub.Fault{Path: "acme/denied", Status: http.StatusForbidden})
	server.Fault(fakehub.Fault{Path: "acme/login", Status: http.StatusUnauthorized})
	server.Fault(fakehub.Fault{Path: "acme/busy", Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "100"}})
	server.Fault(fakehub.Fault{Path: "acme/ill", Status: http.StatusInternalServerError, Header: map[string]string{"Retry-After": "100"}})
	server.Add("acme/unsafe", fakehub.Files{"../../x.gguf": fakehub.Text("x")})
	server.Add("acme/none", fakehub.Files{"README.md": fakehub.Text("x")})
	server.Add("acme/mlx", fakehub.Files{"config.json": fakehub.Text("{}"), "model.safetensors": fakehub.Text("x")})
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		want               string // parts of the body, parted by …
	}{
		"no model":                  {"POST", downloadPath, `{}`, 400, `"code":"missing_required_parameter","param":"model"`},
		"model is a number":         {"POST", downloadPath, `{"model":1}`, 400, `"code":"invalid_type","param":"model"`},
		"quantization is a number":  {"POST", downloadPath, `{"model":"a/b","quantization":4}`, 400, `"code":"invalid_type","param":"quantization"`},
		"quantization of no URL":    {"POST", downloadPath, `{"model":"acme/tiny-GGUF","quantization":"Q8_0"}`, 400, `"type":"not_implemented"…"code":"not_implemented","param":"quantization"`},
		"unknown quantization":      {"POST", downloadPath, `{"model":"` + server.URL + `/acme/tiny-GGUF","quantization":"Q2"}`, 400, `There are: Q4_K_M…Q8_0…"code":"invalid_value","param":"quantization"`},
		"not https":                 {"POST", downloadPath, `{"model":"http://huggingface.co/a/b"}`, 400, `only https…"param":"model"`},
		"another host":              {"POST", downloadPath, `{"model":"https://elsewhere.example/a/b"}`, 400, `no hub that is known here…"param":"model"`},
		"unknown repository":        {"POST", downloadPath, `{"model":"acme/unknown"}`, 404, `"type":"model_not_found"`},
		"unknown name":              {"POST", downloadPath, `{"model":"unknown"}`, 404, `"type":"model_not_found"`},
		"the hub says 403":          {"POST", downloadPath, `{"model":"acme/denied"}`, 403, `a token…"code":"hub_denied"`},
		"the hub says 401":          {"POST", downloadPath, `{"model":"acme/login"}`, 403, `a token…"code":"hub_denied"`},
		"the hub says 429":          {"POST", downloadPath, `{"model":"acme/busy"}`, 503, `"code":"hub_busy"`},
		"the hub says 500":          {"POST", downloadPath, `{"model":"acme/ill"}`, 502, `"code":"hub_failed"`},
		"names that lead elsewhere": {"POST", downloadPath, `{"model":"acme/unsafe"}`, 502, `"code":"unsafe_file_name"`},
		"nothing that runs":         {"POST", downloadPath, `{"model":"acme/none"}`, 404, `"type":"model_not_found"`},
		"no engine for it":          {"POST", downloadPath, `{"model":"acme/mlx"}`, 400, `"type":"not_implemented"`},
		"status of no job":          {"GET", statusPath + "job_0", "", 404, `"type":"job_not_found"`},
		"job that isn't":            {"GET", downloadPath + "/job_0", "", 404, `"type":"job_not_found"`},
		"pause of no job":           {"POST", downloadPath + "/job_0/pause", "", 404, `"type":"job_not_found"`},
		"events of no job":          {"GET", downloadPath + "/job_0/events", "", 404, `"type":"job_not_found"`},
		"list by DELETE":            {"DELETE", downloadPath, "", 405, "Unexpected"},
		"job by DELETE":             {"DELETE", downloadPath + "/job_0", "", 405, "Unexpected"},
		"status by DELETE":          {"DELETE", statusPath + "job_0", "", 405, "Unexpected"},
		"pause by GET":              {"GET", downloadPath + "/job_0/pause", "", 405, "Unexpected"},
		"load by DELETE":            {"DELETE", "/api/v1/models/load", "", 405, "Unexpected"},
		"model by GET":              {"GET", "/api/v1/models/a/b", "", 404, `"type":"model_not_found"`},
		"DELETE of nothing":         {"DELETE", "/api/v1/models/", "", 404, "Unexpected"},
		"DELETE of no model":        {"DELETE", "/api/v1/models/a/b", "", 404, `"type":"model_not_found"`},
	} {
		a := s.do(tt.method, tt.path, tt.body)
		for part := range strings.SplitSeq(tt.want, "…") {
			if a.status != tt.status || !strings.Contains(a.body, part) {
				t.Errorf("%s: %d %s, want %d and %s", name, a.status, a.body, tt.status, part)
			}
		}
	}
	for path, allow := range map[string]string{
		downloadPath: "GET, HEAD, POST", downloadPath + "/job_0/pause": "POST", statusPath + "job_0": "GET, HEAD", "/api/v1/models/a/b": "DELETE, GET, HEAD",
	} {
		if a := s.do("PUT", path, ""); a.status != 405 || a.header.Get("Allow") != allow {
			t.Errorf("%s: %d %q", path, a.status, a.header.Get("Allow"))
		}
	}
}

func TestRemove_NotWhileItIsLoadedNorFromElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	link(t, shipped, filepath.Join(elsewhere, "other", "model", "m.gguf"))
	s := serve(t, nil, func(_ *endpoint.Config, s *node.Settings) { s.ModelsDirs = []string{elsewhere} })
	const path = "/api/v1/models/lmcaddy/tinychat"
	s.chat("")
	if a := s.do("DELETE", path, ""); a.status != 409 || a.code() != "model_in_use" {
		t.Errorf("loaded: %d %s", a.status, a.body)
	}
	s.do("POST", "/api/v1/models/unload", `{"instance_id":"lmcaddy/tinychat"}`)
	if a := s.do("DELETE", "/api/v1/models/other/model", ""); a.status != 403 || a.code() != "not_removable" {
		t.Errorf("elsewhere: %d %s", a.status, a.body)
	}
	if a := s.do("DELETE", "/api/v1/models/lmcaddy%2Ftinychat", ""); a.status != 200 || a.body != `{"key":"lmcaddy/tinychat"}` {
		t.Errorf("unloaded: %d %s", a.status, a.body)
	}
	if a := s.do("DELETE", path, ""); a.status != 404 {
		t.Errorf("gone: %d %s", a.status, a.body)
	}
	if _, err := os.Stat(shipped); err != nil {
		t.Error(err)
	}
}

func TestModels_BrokenOnesAreListedWithTheReason(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	file := filepath.Join(elsewhere, "bad", "model", "m.gguf")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, func(_ *endpoint.Config, s *node.Settings) { s.ModelsDirs = []string{elsewhere} })
	a := s.do("GET", "/api/v1/models", "")
	want := `[{"key":"bad/model","path":"bad/model/m.gguf","error":"it is not a GGUF file"}]`
	if gjson.Get(a.body, "broken").Raw != want || gjson.Get(a.body, "models.#").Int() != 1 {
		t.Error(a.body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for a = s.do("GET", "/api/v1/models", ""); strings.Contains(a.body, "broken"); a = s.do("GET", "/api/v1/models", "") {
		if t.Context().Err() != nil {
			t.Fatal("it is listed still")
		}
	}
}
