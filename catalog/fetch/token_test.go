package fetch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestToken_GoesToItsHubAlone: it isn't sent to the file server, nor to the targets of redirects.
func TestToken_GoesToItsHubAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withToken(w)
	w.hub.RequireToken("hf_secret")
	w.completes(w.start(tiny))
	w.hub.Quiet(t)
	own, cdn := strings.TrimPrefix(w.hub.URL, "http://"), strings.TrimPrefix(w.hub.CDN, "http://")
	seen := map[string]int{}
	for _, r := range w.hub.Requests() {
		seen[r.Host]++
		if want := map[string]string{own: "Bearer hf_secret"}[r.Host]; r.Token != want {
			t.Errorf("%s%s got the token %q", r.Host, r.Path, r.Token)
		}
	}
	if seen[own] < 3 || seen[cdn] < 1 {
		t.Errorf("requests: %v", seen)
	}
}

// TestToken_IsNotCarriedBack: it is sent again after a redirect back to the hub, but not to another name of the hub.
func TestToken_IsNotCarriedToAnotherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	withToken(w)
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			leaked.Store(true)
		}
		http.NotFound(rw, r)
	}))
	defer other.Close()
	w.tune.attempts = 1
	for _, to := range []string{other.URL, strings.Replace(w.hub.URL, "127.0.0.1", "localhost", 1)} {
		w.hub.Fault(fakehub.Fault{Path: "/resolve/", Redirect: to + "*", Times: 2})
	}
	job := w.start(tiny)
	w.await(job.ID, Job.Ended)
	if leaked.Load() {
		t.Error("the token has leaked")
	}
	for _, r := range w.hub.Requests() {
		if strings.HasPrefix(r.Host, "localhost") && r.Token != "" {
			t.Errorf("%s%s got the token", r.Host, r.Path)
		}
	}
}

// TestToken_ThePagesAreTheHubs: a list that continues on another server is rejected.
func TestToken_ThePagesAreTheHubs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/tree/", Header: map[string]string{"Link": `<https://evil.example/api>; rel="next"`}})
	_, err := w.open().Start(t.Context(), Request{Model: w.hub.URL + "/" + tiny})
	if kindOf(err) != hub.HubFailed || !strings.Contains(err.Error(), "isn't the same hub") {
		t.Error(err)
	}
}

// TestHubs_SecondAndChanged: URLs find their hub, and jobs keep theirs.
func TestHubs_SecondAndChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := fakehub.Start(t)
	second.Add("acme/second", fakehub.Files{"second-Q4_0.gguf": fakehub.Random(9, 1000)})
	w.opts.Hubs = append(w.opts.Hubs, hub.Config{URL: second.URL + "/"})
	job, err := w.open().Start(t.Context(), Request{Model: second.URL + "/acme/second"})
	if err != nil {
		t.Fatal(err)
	}
	w.completes(job)

	w.hub.Fault(fakehub.Fault{Path: "/cdn/", StallAtOnce: true})
	job = w.start(tiny)
	if _, err := w.jobs.Pause(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.jobs.SetHubs([]hub.Config{{URL: second.URL}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.jobs.Resume(job.ID); err != nil {
		t.Fatal(err)
	}
	if failed := w.await(job.ID, Job.Ended); !strings.Contains(failed.Reason, "is configured no more") {
		t.Errorf("%+v", failed)
	}
	if err := w.jobs.SetHubs([]hub.Config{{URL: "http://example.com"}}); err == nil {
		t.Error("a hub without https is taken")
	}
}
