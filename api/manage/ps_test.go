package manage

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// TestPS_OfModels: of an overview, only what is about the models that a token may use is left, and the original isn't changed.
func TestPS_OfModels(t *testing.T) {
	t.Parallel()
	whole := supervisor.Overview{
		Coming:  []supervisor.Coming{{Key: "a/b"}, {Key: "c/d"}},
		Failing: []supervisor.Failing{{Key: "c/d"}, {Key: "a/b"}},
		Waiting: map[string]int{"a/b": 1, "c/d": 2},
	}
	for _, key := range []string{"c/d", "a/b"} {
		whole.Instances = append(whole.Instances, supervisor.Info{Instance: schedule.Instance{ID: key, Spec: &schedule.Spec{Model: catalog.Model{Key: key}}}})
	}
	part := ofModels(whole, func(key string) bool { return strings.HasPrefix(key, "a/b") })
	if len(part.Instances) != 1 || part.Instances[0].ID != "a/b" || len(part.Coming) != 1 || len(part.Failing) != 1 || part.Failing[0].Key != "a/b" {
		t.Errorf("%+v", part)
	}
	if diff := cmp.Diff(map[string]int{"a/b": 1}, part.Waiting); diff != "" {
		t.Error(diff)
	}
	if len(whole.Waiting) != 2 || whole.Instances[0].ID != "c/d" || whole.Failing[0].Key != "c/d" {
		t.Errorf("the original has changed: %+v", whole)
	}
}

// TestPS_ReasonsWithoutPaths: only an administrator sees this machine's folders.
func TestPS_ReasonsWithoutPaths(t *testing.T) {
	t.Parallel()
	lock, err := node.Reserve(home.Dir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	defer func() { _ = n.Close() }()
	if err := n.Push(1, node.Settings{}); err != nil {
		t.Fatal(err)
	}
	o := DescribeOverview(supervisor.Overview{
		Coming:  []supervisor.Coming{{Key: "a/b", Why: "no such file: /secret/folder/m.gguf"}},
		Failing: []supervisor.Failing{{Key: "a/b", Why: "no such file: /secret/folder/m.gguf"}},
	}, nil, time.Now())
	narrow((&endpoint.Call{Node: n}), &o)
	if text := o.Coming[0].Why + o.Failing[0].Why; strings.Contains(text, "secret") || !strings.Contains(text, "m.gguf") {
		t.Error(text)
	}
}
