package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestDownload_FaultsBeforeItStarts: an error of a hub, or in the request, is the answer, and nothing is downloaded.
func TestDownload_FaultsBeforeItStarts(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	s := harness.Start(withEngine(t), h.config())
	for name, c := range map[string]struct {
		fault   hubFault
		add     harness.Fields // a repository
		request harness.Fields
		status  int
		kind    string
		code    string
		message string // a pattern
	}{
		"401":                 {fault: hubFault{"status": 401}, status: 403, kind: "invalid_request", code: "hub_denied", message: `401.*token.*Make a new one`},
		"403":                 {fault: hubFault{"status": 403}, status: 403, kind: "invalid_request", code: "hub_denied", message: `403.*token.*[Aa]ccept`},
		"404":                 {fault: hubFault{"status": 404}, status: 404, kind: "model_not_found", code: "model_not_found", message: `404.*spelling`},
		"429":                 {fault: hubFault{"status": 429, "header": harness.Fields{"Retry-After": "60"}}, status: 503, kind: "internal_error", code: "hub_busy", message: `429.*later`},
		"500":                 {fault: hubFault{"status": 500}, status: 502, kind: "internal_error", code: "hub_failed", message: `500.*later`},
		"says nothing":        {fault: hubFault{"stall_at_once": true}, status: 502, kind: "internal_error", code: "hub_failed", message: `no more bytes arrived for 1s`},
		"cuts the connection": {fault: hubFault{"cut_at_once": true}, status: 502, kind: "internal_error", code: "hub_failed", message: `connection.*failed`},
		"redirects to http":   {fault: hubFault{"redirect": "http://models.example*"}, status: 502, kind: "internal_error", code: "hub_failed", message: `models\.example.*only https`},
		"names with ../":      {add: harness.Fields{"repo": "acme/evil", "text": harness.Fields{"../../../evil.gguf": "x"}}, request: harness.Fields{"model": "acme/evil"}, status: 502, kind: "internal_error", code: "unsafe_file_name", message: `\.\..*don't trust`},
		"another's URL":       {request: harness.Fields{"model": "https://elsewhere.example/a/b"}, status: 400, kind: "invalid_request", code: "invalid_value", message: "no hub that is known"},
		"plain http":          {request: harness.Fields{"model": "http://models.example/a/b"}, status: 400, kind: "invalid_request", code: "invalid_value", message: "only https"},
		"a quantization": {
			request: harness.Fields{"model": h.URL + "/" + tinyRepo, "quantization": "Q2_K"}, status: 400, kind: "invalid_request", code: "invalid_value", message: `There are: Q8_0`,
		},
		"a quantization of an identifier": {
			request: harness.Fields{"model": tinyRepo, "quantization": "Q8_0"}, status: 400, kind: "not_implemented", code: "not_implemented", message: "URL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			if c.fault != nil {
				c.fault["path"] = "/api/"
				h.tell("fault", c.fault)
				defer h.mend()
			}
			if c.add != nil {
				h.tell("add", c.add)
			}
			if c.request == nil {
				c.request = harness.Fields{"model": tinyRepo}
			}
			reply := s.Post(downloadPath, c.request).Want(t, c.status)
			wantNativeError(t, reply, c.kind)
			if code, message := reply.Get("error.code").Str, reply.Get("error.message").Str; code != c.code || !regexp.MustCompile(c.message).MatchString(message) {
				t.Errorf("the error is %s", reply.Body)
			}
			if c.status == http.StatusServiceUnavailable && reply.Header.Get("Retry-After") != "60" {
				t.Errorf("Retry-After: %q", reply.Header.Get("Retry-After"))
			}
		})
	}
	if list := s.Get(downloadPath).Body; list != `{"jobs":[]}` {
		t.Errorf("jobs: %s", list)
	}
	if left, err := os.ReadDir(filepath.Join(s.Dir, "models")); err != nil || len(left) > 0 {
		t.Errorf("there are left %v, %v", left, err)
	}
	if strings.Contains(s.Log(), hubToken) {
		t.Error("the log has the token")
	}
}

// TestDownload_FaultsAmidTheFile are either overcome, and the file is complete, or they end the job with a reason, and no
// file of that name exists.
func TestDownload_FaultsAmidTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		fault   hubFault
		change  func(*hub)
		passes  bool   // by itself
		trouble string // a pattern: the trouble during retries, until the hub works again
		fails   string // a pattern of the reason
		code    string
	}{
		"ranges are ignored":           {fault: hubFault{"no_ranges": true, "cut": 1 << 20, "times": 1}, passes: true},
		"the connection breaks":        {fault: hubFault{"cut": 1 << 20, "times": 1}, passes: true},
		"another range than was asked": {fault: hubFault{"wrong_range": true, "skip": 1, "times": 1}, change: func(h *hub) { h.tell("fault", hubFault{"path": "/cdn/", "cut": 1 << 20, "times": 1}) }, passes: true},
		"every answer has other tags":  {fault: hubFault{"other_tags": true, "cut": 1 << 20, "times": 2}, passes: true},
		"500":                          {fault: hubFault{"status": 500}, trouble: "500"},
		"404 of the file's server":     {fault: hubFault{"status": 404}, trouble: "404.*redirects to"},
		"429":                          {fault: hubFault{"status": 429, "header": harness.Fields{"Retry-After": "1"}}, trouble: "429.*too many requests"},
		"a stall":                      {fault: hubFault{"stall": 1 << 20}, trouble: "no more bytes arrived for 1s"},
		"a length that is a lie":       {fault: hubFault{"longer": 7}, fails: "7.*list says", code: "file_changed"},
		"a damaged byte":               {fault: hubFault{"damage": 1 << 20}, fails: "checksum", code: "file_changed"},
		"a redirect to plain http":     {fault: hubFault{"redirect": "http://models.example*"}, fails: "only https", code: "hub_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, 0)
			s := harness.Start(withEngine(t), h.config())
			if c.change != nil {
				c.change(h)
			}
			c.fault["path"] = "/cdn/"
			h.tell("fault", c.fault)
			id := download(s, tinyRepo)
			if c.trouble != "" {
				awaitJob(s, id, "the trouble is told of", func(r harness.Reply) bool {
					return hasStatus("downloading")(r) && regexp.MustCompile(c.trouble).MatchString(r.Get("trouble").Str)
				})
				h.mend()
			}
			if c.fails == "" {
				awaitCompleted(s, id)
				wantWhole(s)
			} else {
				failed := awaitJob(s, id, "it fails", hasStatus("failed"))
				if e := failed.Get("error"); e.Get("code").Str != c.code || !regexp.MustCompile(c.fails).MatchString(e.Get("message").Str) {
					t.Errorf("the reason is %s", e)
				}
				if n := s.Get("/api/v1/models").Get("models.#").Int(); n != 0 {
					t.Error("a model is listed")
				}
				h.mend()
				s.Post(downloadPath+"/"+id+"/resume", "").Want(t, http.StatusOK)
				awaitCompleted(s, id)
				wantWhole(s)
			}
			wantTokenKept(t, h)
		})
	}
}

// wantTokenKept checks that only the hub received its token.
func wantTokenKept(t *testing.T, h *hub) {
	t.Helper()
	given := false
	for _, r := range append(h.asked(), h.requests()...) {
		own := r.Host == h.listen
		if own && r.Token == "Bearer "+hubToken {
			given = true
		}
		if !own && r.Token != "" {
			t.Errorf("%s was given the token", r.Host)
		}
	}
	if !given {
		t.Error("the hub wasn't given the token")
	}
}

// TestDownload_TheFileChangesInBetween: what was downloaded of the old file is discarded, and the new one is complete.
func TestDownload_TheFileChangesInBetween(t *testing.T) {
	t.Parallel()
	h := newHub(t, 1<<20)
	s := harness.Start(withEngine(t), h.config())
	h.tell("add", harness.Fields{"repo": tinyRepo, "random": harness.Fields{tinyFile: 3 << 20}, "seed": 5})
	id := download(s, tinyRepo)
	awaitJob(s, id, "some bytes come", hasBytes(300<<10))
	h.tell("add", harness.Fields{"repo": tinyRepo, "disk": harness.Fields{tinyFile: filepath.Join(h.dir, tinyRepo, tinyFile)}})
	h.tell("cut", struct{}{})
	h.mend()
	awaitCompleted(s, id)
	wantWhole(s)
}
