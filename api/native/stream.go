package native

import (
	"cmp"
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// whileLoading has the answer generated, and tells of the load while that waits for it. Nothing of a load is told once it has returned,
// also if that failed without a lease.
func (r *run) whileLoading(loading <-chan supervisor.Progress, generate func() error) error {
	isLeased := r.sendLoading(loading)
	defer isLeased()
	r.OnLeased = func(lease *supervisor.Lease) {
		isLeased()
		r.StoreBeginning()
		instance, took := lease.Instance.ID, lease.LoadTime
		if took == 0 && r.loading != "" { // another instance has become free first
			instance, took = r.loading, time.Since(r.loadSince)
		}
		if took > 0 {
			r.AwaitBeginning()
			r.Event(loadEnd(instance, took)) // also where the engine then refuses the request
		}
		r.loading = ""
	}
	return generate()
}

// sendLoading tells of the load while the request waits for it, until the function that it returns is called.
func (r *run) sendLoading(loading <-chan supervisor.Progress) (end func()) {
	ctx, cancel := context.WithCancel(r.Call.Request.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case p := <-loading:
				switch {
				case p.LoadTime > 0: // but other requests have its slots for now
					r.loading = ""
					r.AwaitBeginning()
					r.Event(loadEnd(p.Instance, p.LoadTime))
				case p.Instance != "":
					if r.loading == "" {
						r.loading, r.loadSince = p.Instance, time.Now()
					}
					r.AwaitBeginning()
					r.Event(translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

// AppendEnd appends the end of the stream. Until the model is being loaded, or an engine has begun to answer, an error has a status instead.
func (r *run) AppendEnd(dst []byte, e *translate.Error) []byte {
	if !r.out.Begun() { // but the header has been sent, with a comment
		r.out.Announced = "" // it isn't stored
		dst = r.out.Begin(dst, cmp.Or(r.Request.Target.Instance, r.Request.Target.Model.Key))
	}
	if e != nil {
		dst = r.out.Append(dst, translate.Fault{Err: e})
		if (!r.out.Answer.IsEmpty() || r.out.Announced != "") && r.out.Answer.ResponseID == "" && e.Code != text.CodeNotStored {
			_ = r.storeTurn(store.Failed) // the error event is about what came first
		}
	}
	return r.out.End(dst)
}
