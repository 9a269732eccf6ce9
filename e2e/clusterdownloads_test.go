package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The downloads of all nodes are listed by each, and each pauses, resumes, cancels and follows them.
func TestCluster_DownloadsAreOfAllNodes(t *testing.T) {
	t.Parallel()
	h := newHub(t, 200<<10)
	database := harness.StartPostgres(t, nil)
	var nodes []*node
	for range 3 {
		nodes = append(nodes, launchNode(withEngine(t), harness.FreePort(t), database, "lm_auth", "hub "+h.URL))
	}
	awaitNodes(t, nodes)
	admin := created(t, nodes[0].Home, "--name", "admin", "--scopes", "admin")
	guest := created(t, nodes[0].Home, "--name", "guest")
	stranger := created(t, nodes[0].Home, "--name", "stranger", "--models", "other/*")
	there := nodes[1]
	id := download(there.As(admin), tinyRepo)
	path := downloadPath + "/" + id
	for _, n := range nodes {
		list := n.As(admin).Get(downloadPath).Want(t, http.StatusOK)
		if got := list.Get("jobs.0"); len(list.Get("jobs").Array()) != 1 || got.Get("job_id").Str != id || got.Get("node").Str != there.name() ||
			!got.Get("owner").Exists() || got.Get("keys").Exists() || list.Get("silent_nodes").Exists() {
			t.Errorf("%s lists %s", n.name(), list.Body)
		}
		if got := n.As(guest).Get(path).Want(t, http.StatusOK); got.Get("owner").Exists() || got.Get("keys").Exists() {
			t.Errorf("%s tells a guest %s", n.name(), got.Body)
		}
		if got := n.As(stranger).Get(downloadPath).Want(t, http.StatusOK); got.Get("jobs.#").Int() != 0 {
			t.Errorf("%s tells a stranger %s", n.name(), got.Body)
		}
		n.As(stranger).Get(path).Want(t, http.StatusNotFound)
		n.As(stranger).Get(path+"/events").Want(t, http.StatusNotFound)
		n.As(guest).Post(path+"/pause", harness.Fields{}).Want(t, http.StatusForbidden)
	}
	door := nodes[0].As(admin)
	for _, change := range []struct{ what, status string }{{"pause", "paused"}, {"resume", "downloading"}, {"pause", "paused"}} {
		got := door.Post(path+"/"+change.what, harness.Fields{}).Want(t, http.StatusOK)
		if got.Get("status").Str != change.status || job(there.As(admin), id).Get("status").Str != change.status {
			t.Errorf("%s: %s", change.what, got.Body)
		}
	}
	h.mend()
	door.Post(path+"/resume", harness.Fields{}).Want(t, http.StatusOK)
	events := door.Get(path+"/events").Want(t, http.StatusOK).Body
	if !strings.Contains(events, "event: download.completed\n") || !strings.Contains(events, fmt.Sprintf("%q", there.name())) {
		t.Errorf("the events are %s", events)
	}
	door.Post(path+"/cancel", harness.Fields{}).Want(t, http.StatusConflict)
	if list := nodes[2].Command("get").Output; !strings.Contains(list, there.name()) {
		t.Errorf("the command prints %s", list)
	}

	// A node that doesn't answer delays the list only for a moment.
	there.Pause()
	begun := time.Now()
	list := door.Get(downloadPath).Want(t, http.StatusOK)
	if took := time.Since(begun); took > 10*time.Second || list.Get("silent_nodes.0").Str != there.name() || list.Get("jobs.#").Int() != 0 {
		t.Errorf("after %s: %s", took, list.Body)
	}
	there.Resume()
}
