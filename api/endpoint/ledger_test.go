package endpoint

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Waits at the same time count once, and are parted into those for a load and those for others.
func TestCall_Leased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		c := &Call{}
		lease := &supervisor.Lease{LoadTime: 2 * time.Second, RestoreTime: time.Second}
		c.Ledger.Leased(t.Context(), now.Add(-10*time.Second), lease)
		c.Ledger.Leased(t.Context(), now.Add(-5*time.Second), &supervisor.Lease{LoadTime: 9 * time.Second}) // at the same time
		if of := c.Ledger.Summary; of.Queue != 7*time.Second || of.Load != 2*time.Second || of.Restore != time.Second {
			t.Errorf("%s, %s, %s", of.Queue, of.Load, of.Restore)
		}
	})
}

// TestLedger_CostsNoAllocation: what a request tells of itself is a part of the call, and counting it makes nothing new. The log keeps a copy,
// which isn't encoded.
func TestLedger_CostsNoAllocation(t *testing.T) {
	n := openNode(t) // not parallel: allocations are counted
	c := &Call{Site: new(Site), Dialect: new(Dialect), Node: n, Request: httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil), ID: "r"}
	c.Ledger.Summary.Model, c.Ledger.ToModel, c.Ledger.Summary.Instance = "lmcaddy/tinychat", true, "lmcaddy/tinychat"
	n.Record.Traffic.Observe(summarize(c), true) // the first request to a model makes room for its figures
	allocations := testing.AllocsPerRun(100, func() { n.Record.Traffic.Observe(summarize(c), c.Ledger.ToModel) })
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
	c.Site.Logs = logs.New()
	if allocations := testing.AllocsPerRun(100, func() { logEnd(c, &c.Ledger.Summary) }); allocations > 1 { // the copy that is kept
		t.Errorf("the log's record makes %v allocations", allocations)
	}
}
