package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestDownload_BelongsToWhoBeganIt(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	s := guarded(open)
	ann, _ := s.token(access.Token{Name: "ann"})
	bob, _ := s.token(access.Token{Name: "bob"})
	mine, _ := s.token(access.Token{Name: "limited, but not from it", Models: []string{"acme/*"}})
	other, _ := s.token(access.Token{Name: "limited to another", Models: []string{"lmcaddy/*", "acme/tiny@q2_k"}})
	admin, _ := s.token(access.Token{Name: "admin", Scopes: []access.Scope{access.ScopeAdmin}})
	const ask = `{"model":"acme/tiny-GGUF"}`
	started := s.with(ann, "POST", downloadPath, ask)
	id := gjson.Get(started.body, "job_id").Str
	if id == "" {
		t.Fatal(started.body)
	}
	job := downloadPath + "/" + id
	for _, step := range []struct {
		who, secret, method, path string
		status                    int
		code                      string
	}{
		{"another", bob, "GET", statusPath + id, 200, ""},
		{"another", bob, "GET", job, 200, ""},
		{"another", bob, "POST", job + "/pause", 403, "not_your_download"},
		{"another", bob, "POST", job + "/cancel", 403, "not_your_download"},
		{"another, limited", mine, "GET", statusPath + id, 200, ""},
		{"another, limited", mine, "POST", job + "/pause", 403, "not_your_download"},
		{"limited to others", other, "GET", statusPath + id, 404, "job_not_found"},
		{"limited to others", other, "GET", job, 404, "job_not_found"},
		{"limited to others", other, "GET", job + "/events", 404, "job_not_found"},
		{"limited to others", other, "POST", job + "/pause", 404, "job_not_found"},
		{"limited to others", other, "POST", job + "/resume", 404, "job_not_found"},
		{"limited to others", other, "POST", job + "/cancel", 404, "job_not_found"},
		{"its owner", ann, "POST", job + "/pause", 200, ""},
		{"another", bob, "POST", job + "/resume", 403, "not_your_download"},
		{"an administrator", admin, "POST", job + "/resume", 200, ""},
		{"an administrator", admin, "POST", job + "/pause", 200, ""},
	} {
		if got := s.with(step.secret, step.method, step.path, ""); got.status != step.status || got.status != 200 && got.code() != step.code {
			t.Errorf("%s: %s %s: %d %s", step.who, step.method, step.path, got.status, got.body)
		}
	}
	for secret, want := range map[string]int64{ann: 1, bob: 1, mine: 1, other: 0, admin: 1} {
		if got := s.with(secret, "GET", downloadPath, ""); gjson.Get(got.body, "jobs.#").Int() != want {
			t.Errorf("%s, want %d", got.body, want)
		}
	}
	if got := s.with(bob, "POST", downloadPath, ask); got.status != 200 || gjson.Get(got.body, "status").Str != "paused" {
		t.Errorf("asking for the same again has resumed it: %d %s", got.status, got.body)
	}
	if got := s.with(other, "POST", downloadPath, ask); got.status != 403 || got.code() != "model_not_allowed" {
		t.Errorf("limited to others: %d %s", got.status, got.body)
	}
	hub.Mend()
	if got := s.with(ann, "POST", downloadPath, ask); got.status != 200 || gjson.Get(got.body, "status").Str != "downloading" {
		t.Errorf("its owner: %d %s", got.status, got.body)
	}
}

func TestDownload_OfALimitedToken(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	s := guarded(open)
	for name, tt := range map[string]struct {
		models, ask string
		status      int
	}{
		"another model":        {"other/*", `{"model":"acme/tiny-GGUF"}`, 403},
		"one that isn't there": {"other/*", `{"model":"acme/nothing"}`, 403},
		"by its URL":           {"other/*", `{"model":"HUB/acme/tiny-GGUF"}`, 403},
		"its revision":         {"acme/tiny", `{"model":"HUB/acme/tiny-GGUF/tree/v2"}`, 403},
		"another quantization": {"acme/tiny@q8_0", `{"model":"HUB/acme/tiny-GGUF","quantization":"Q4_K_M"}`, 403},
		"what is chosen":       {"acme/tiny@q2_k", `{"model":"acme/tiny-GGUF"}`, 403},
		"the quantization":     {"acme/tiny@q4_k_m", `{"model":"HUB/acme/tiny-GGUF","quantization":"Q4_K_M"}`, 200},
		"all of them":          {"acme/tiny", `{"model":"acme/tiny-GGUF"}`, 200},
	} {
		secret, _ := s.token(access.Token{Models: []string{tt.models}})
		asked := len(hub.Requests())
		got := s.with(secret, "POST", downloadPath, strings.ReplaceAll(tt.ask, "HUB", hub.URL))
		if got.status != tt.status || tt.status == 403 && got.code() != "model_not_allowed" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if tt.models == "other/*" && len(hub.Requests()) > asked {
			t.Errorf("%s: the hub is asked for what may not be used", name)
		}
		if id := gjson.Get(got.body, "job_id").Str; id != "" {
			if got := s.with(secret, "GET", downloadPath+"/"+id+"/events", ""); !strings.Contains(got.body, "download.completed") {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
	}
}

// A job of which it isn't known who began it, as of before there were owners, and of sites without authentication.
func TestDownload_OfNobody(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	s := guarded(open)
	job := downloadPath + "/" + open.start("acme/tiny-GGUF")
	limited, _ := s.token(access.Token{Models: []string{"acme/*"}})
	free, _ := s.token(access.Token{})
	if got := s.with(limited, "POST", job+"/pause", ""); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(free, "POST", job+"/pause", ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// One that has failed may be begun again by anybody who may use the model, and is theirs then.
func TestDownload_ThatHasFailedIsBegunAgain(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	s := guarded(open)
	ann, _ := s.token(access.Token{})
	bob, bobs := s.token(access.Token{})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	const ask = `{"model":"acme/tiny-GGUF"}`
	id := gjson.Get(s.with(ann, "POST", downloadPath, ask).body, "job_id").Str
	if got := s.with(ann, "POST", downloadPath+"/"+id+"/cancel", ""); got.status != 200 {
		t.Fatal(got.body)
	}
	again := s.with(bob, "POST", downloadPath, ask)
	if got := gjson.Get(again.body, "job_id").Str; got != id || again.status != http.StatusOK {
		t.Errorf("%d %s", again.status, again.body)
	}
	owners := []string{
		gjson.Get(s.with(admin, "GET", statusPath+id, "").body, "owner").Str,
		fmt.Sprint(s.with(ann, "POST", downloadPath+"/"+id+"/pause", "").status),
		fmt.Sprint(s.with(bob, "POST", downloadPath+"/"+id+"/pause", "").status),
	}
	if diff := cmp.Diff([]string{bobs.ID, "403", "200"}, owners); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
