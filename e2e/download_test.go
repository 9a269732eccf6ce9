package e2e

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	downloadPath = "/api/v1/models/download"
	tiny         = "acme/tiny"      // the key of the hub's model
	tinyRepo     = "acme/Tiny-GGUF" // the repository
	tinyFile     = "tiny-Q8_0.gguf"
	tinyPath     = "models/" + tinyRepo + "/" + tinyFile // in the home
)

// withEngine returns a home with an engine and no models.
func withEngine(t *testing.T) *harness.Home {
	t.Helper()
	home := harness.NewHome(t)
	if err := os.RemoveAll(filepath.Join(home.Dir, "models")); err != nil {
		t.Fatal(err)
	}
	return home
}

// download starts a download, and returns the job's id.
func download(s *harness.Server, model string) string {
	s.T.Helper()
	return s.Post(downloadPath, harness.Fields{"model": model}).Want(s.T, http.StatusOK).Get("job_id").Str
}

// job returns a job's current state.
func job(s *harness.Server, id string) harness.Reply {
	s.T.Helper()
	return s.Get(downloadPath+"/status/"+id).Want(s.T, http.StatusOK)
}

// awaitJob waits until a job meets a condition.
func awaitJob(s *harness.Server, id, what string, is func(harness.Reply) bool) harness.Reply {
	s.T.Helper()
	var now harness.Reply
	defer func() {
		if s.T.Failed() {
			s.T.Logf("the job is %s", now.Body)
		}
	}()
	harness.Eventually(s.T, harness.Patience, what, func() bool {
		now = job(s, id)
		return is(now)
	})
	return now
}

func hasStatus(status string) func(harness.Reply) bool {
	return func(r harness.Reply) bool { return r.Get("status").Str == status }
}

func hasBytes(n int64) func(harness.Reply) bool {
	return func(r harness.Reply) bool { return r.Get("downloaded_bytes").Int() >= n }
}

func awaitCompleted(s *harness.Server, id string) harness.Reply {
	s.T.Helper()
	done := awaitJob(s, id, "the download ends", func(r harness.Reply) bool { return r.Get("status").Str != "downloading" })
	if !hasStatus("completed")(done) {
		s.T.Fatalf("it is %s", done.Body)
	}
	return done
}

// wantWhole checks the model's file by its SHA-256.
func wantWhole(s *harness.Server) {
	s.T.Helper()
	got, err := os.ReadFile(filepath.Join(s.Dir, filepath.FromSlash(tinyPath)))
	if err != nil {
		s.T.Fatal(err)
	}
	if want := sha256.Sum256(harness.ShippedModel(s.T)); sha256.Sum256(got) != want {
		s.T.Errorf("the file has other bytes than the hub's")
	}
}

func TestDownload_ThenLoadThenChatByTheAPIAlone(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	s := harness.Start(withEngine(t), h.config())
	if models := s.Get("/api/v1/models").Get("models.#").Int(); models != 0 {
		t.Fatalf("%d models are there before", models)
	}
	started := s.Post(downloadPath, harness.Fields{"model": "acme/tiny-gguf"}).Want(t, http.StatusOK)
	if started.Get("status").Str != "downloading" || started.Get("total_size_bytes").Int() != int64(len(harness.ShippedModel(t))) || !started.Get("started_at").Exists() {
		t.Errorf("started: %s", started.Body)
	}
	done := awaitCompleted(s, started.Get("job_id").Str)
	// at once: it is completed when it is listed
	if key := s.Get("/api/v1/models").Get("models.0.key").Str; key != tiny || done.Get("model").Str != tiny {
		t.Errorf("listed is %q, completed %s", key, done.Body)
	}
	if at, err := time.Parse(time.RFC3339, done.Get("completed_at").Str); err != nil || done.Get("downloaded_bytes").Int() != done.Get("total_size_bytes").Int() || at.Location() != time.UTC {
		t.Errorf("completed: %s", done.Body)
	}
	wantWhole(s)
	if id := s.Post(harness.LoadPath, harness.Fields{"model": "acme/tiny-gguf"}).Want(t, http.StatusOK).Get("instance_id").Str; id != tiny {
		t.Errorf("loaded is %q", id)
	}
	for _, name := range []string{tiny, "acme/tiny-gguf", tinyRepo, "tiny"} {
		if a := s.Chat(harness.Ask(capital).With("model", name)); a.Content != paris || a.Model != tiny {
			t.Errorf("%s: %+v", name, a)
		}
	}
	again := s.Post(downloadPath, harness.Fields{"model": h.URL + "/" + tinyRepo}).Want(t, http.StatusOK)
	if again.Body != `{"status":"already_downloaded"}` {
		t.Errorf("again: %s", again.Body)
	}
	if strings.Contains(s.Log(), hubToken) {
		t.Error("the log has the token")
	}
}

func TestDownload_PauseResumeCancelAndList(t *testing.T) {
	t.Parallel()
	h := newHub(t, 1<<20)
	s := harness.Start(withEngine(t), h.config())
	id := download(s, tinyRepo)
	if joined := download(s, h.URL+"/"+tinyRepo); joined != id {
		t.Errorf("asked twice: %s and %s", id, joined)
	}
	under := awaitJob(s, id, "some bytes come", hasBytes(200<<10))
	if under.Get("bytes_per_second").Num <= 0 || !under.Get("estimated_completion").Exists() {
		t.Errorf("under way: %s", under.Body)
	}
	paused := s.Post(downloadPath+"/"+id+"/pause", "").Want(t, http.StatusOK)
	if !hasStatus("paused")(paused) || paused.Get("bytes_per_second").Exists() {
		t.Errorf("paused: %s", paused.Body)
	}
	before := len(h.requests())
	for range 20 {
		if now := job(s, id); now.Body != paused.Body {
			t.Fatalf("while it is paused it has become %s", now.Body)
		}
	}
	if n := len(h.requests()); n != before {
		t.Errorf("%d requests while it is paused", n-before)
	}
	if resumed := s.Post(downloadPath+"/"+id+"/resume", "").Want(t, http.StatusOK); !hasStatus("downloading")(resumed) || !hasBytes(paused.Get("downloaded_bytes").Int())(resumed) {
		t.Errorf("resumed: %s", resumed.Body)
	}
	awaitJob(s, id, "more bytes come", hasBytes(paused.Get("downloaded_bytes").Int()+1))
	s.Do(http.MethodDelete, "/api/v1/models/"+tiny, nil).Want(t, http.StatusConflict)
	cancelled := s.Post(downloadPath+"/"+id+"/cancel", "").Want(t, http.StatusOK)
	if !hasStatus("failed")(cancelled) || cancelled.Get("error.code").Str != "cancelled" || cancelled.Get("downloaded_bytes").Int() != 0 {
		t.Errorf("cancelled: %s", cancelled.Body)
	}
	wantNativeError(t, s.Post(downloadPath+"/"+id+"/pause", "").Want(t, http.StatusConflict), "invalid_request")
	if left, err := os.ReadDir(filepath.Join(s.Dir, "models")); err != nil || len(left) > 0 {
		t.Errorf("there are left %v, %v", left, err)
	}
	h.mend()
	other := s.Post(downloadPath, harness.Fields{"model": h.URL + "/" + tinyRepo, "quantization": "q8_0"}).Want(t, http.StatusOK).Get("job_id").Str
	if other != id {
		t.Errorf("a cancelled job's files are fetched by another, %s", other)
	}
	awaitCompleted(s, id)
	if list := s.Get(downloadPath).Get("jobs.#.job_id").Raw; list != fmt.Sprintf("[%q]", id) {
		t.Errorf("listed are %s", list)
	}
	wantNativeError(t, s.Post(downloadPath+"/"+id+"/cancel", "").Want(t, http.StatusConflict), "invalid_request")
}

func TestDownload_EventsTellOfAllToTheEnd(t *testing.T) {
	t.Parallel()
	h := newHub(t, 2<<20)
	s := harness.Start(withEngine(t), h.config())
	id := download(s, tinyRepo)
	response, err := http.Get(s.Base + downloadPath + "/" + id + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" {
		t.Fatalf("the type is %q", kind)
	}
	lines := bufio.NewScanner(response.Body)
	var names []string
	last, name := int64(-1), ""
	for lines.Scan() {
		if word, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = word
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		ev := gjson.Parse(data)
		bytes := ev.Get("job.downloaded_bytes").Int()
		if ev.Get("type").Str != name || ev.Get("job.job_id").Str != id || bytes < last {
			t.Errorf("event %s after %d bytes: %s", name, last, data)
		}
		if last = bytes; !slices.Contains(names, name) {
			names = append(names, name)
		}
		if name == "download.progress" && bytes > 1<<20 && len(names) == 1 {
			s.Post(downloadPath+"/"+id+"/pause", "").Want(t, http.StatusOK)
		}
		if name == "download.paused" {
			s.Post(downloadPath+"/"+id+"/resume", "").Want(t, http.StatusOK)
		}
	}
	if diff := cmp.Diff([]string{"download.progress", "download.paused", "download.completed"}, names); diff != "" || lines.Err() != nil {
		t.Errorf("%v (-want +got):\n%s", lines.Err(), diff)
	}
}

func TestDelete_TakesTheModelsFilesAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	home := harness.NewHome(t)
	s := harness.Start(home, h.config())
	awaitCompleted(s, download(s, tinyRepo))
	beside := home.AddModel(tinyRepo, "notes.txt", []byte("mine"))
	s.Chat(harness.Ask(capital).With("model", tiny))
	refused := s.Do(http.MethodDelete, "/api/v1/models/"+tiny, nil).Want(t, http.StatusConflict)
	if message := refused.Get("error.message").Str; !strings.Contains(message, "Unload") || !strings.Contains(message, tiny) {
		t.Errorf("message %q", message)
	}
	wantUnloaded(t, s, tiny)
	if key := s.Do(http.MethodDelete, "/api/v1/models/acme%2Ftiny", nil).Want(t, http.StatusOK).Get("key").Str; key != tiny {
		t.Errorf("removed is %q", key)
	}
	wantNativeError(t, s.Do(http.MethodDelete, "/api/v1/models/"+tiny, nil).Want(t, http.StatusNotFound), "model_not_found")
	if _, err := os.Stat(filepath.Join(s.Dir, filepath.FromSlash(tinyPath))); !os.IsNotExist(err) {
		t.Errorf("the file is there still: %v", err)
	}
	if _, err := os.Stat(beside); err != nil {
		t.Error(err)
	}
	s.Chat(harness.Ask(capital)) // the other model still works
	if again := s.Post(downloadPath, harness.Fields{"model": tinyRepo}).Want(t, http.StatusOK); again.Get("status").Str != "downloading" {
		t.Errorf("downloaded again: %s", again.Body)
	} else {
		awaitCompleted(s, again.Get("job_id").Str)
	}
}
