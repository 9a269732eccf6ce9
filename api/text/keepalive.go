package text

import (
	"context"
	"errors"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// shortly is how long a model is kept that isn't to be kept at all: it is unloaded as soon as it is idle.
const shortly = time.Millisecond

// KeepAlive is what a request says of how long its model stays loaded after it.
type KeepAlive struct {
	call     *endpoint.Call
	asked    *time.Duration // 0: not at all; negative: for ever; nil: the request doesn't say
	anyone   bool           // another node has sent the request, whose client may decide about any instance
	instance supervisor.Info
}

// NewKeepAlive returns how long the model of a request is kept, which asked says; nil: it doesn't.
func NewKeepAlive(c *endpoint.Call, asked *time.Duration) *KeepAlive {
	return &KeepAlive{call: c, asked: asked}
}

// Unloads reports whether the model isn't to be kept at all.
func (k *KeepAlive) Unloads() bool { return k.asked != nil && *k.asked == 0 }

// Apply sets how long the model stays loaded if this request loads it. It isn't unloaded between the attempts at one request: a time of 0
// begins with the end of the request.
func (k *KeepAlive) Apply(rq *Request) {
	if k.asked != nil && *k.asked != 0 {
		ttl := max(0, *k.asked)
		rq.Demand.TTL = limitTTL(k.call, &ttl, rq.Target.Model.Key)
	}
	if k.asked != nil {
		rq.Demand.Retention = &schedule.Retention{TTL: k.ttl(rq.Target.Model.Key), OnlyOwned: !k.call.Identity.May(access.ScopeModelsManage)}
	}
}

func (k *KeepAlive) ttl(key string) time.Duration {
	ttl := max(0, *k.asked)
	if k.Unloads() {
		ttl = shortly
	}
	return *limitTTL(k.call, &ttl, key)
}

// peerKeepAlive is what another node of the cluster says in the header of its request.
func peerKeepAlive(c *endpoint.Call, keep *schedule.Retention) *KeepAlive {
	if keep == nil {
		return nil
	}
	k := NewKeepAlive(c, &keep.TTL)
	if keep.TTL == 0 { // unlimited
		k.asked = new(time.Duration(-1))
	}
	k.anyone = !keep.OnlyOwned
	c.Ends = append(c.Ends, k.End)
	return k
}

// Leased notes the instance that answers.
func (k *KeepAlive) Leased(lease *supervisor.Lease) { k.instance = lease.Instance }

// End sets how long the instance is kept from now on. An identity that may not manage models decides that for what it has loaded
// itself, and no longer than the settings do.
func (k *KeepAlive) End() {
	in, c := &k.instance, k.call
	if k.asked == nil || in.Spec == nil {
		return
	}
	isAllowed := owns(c, in)
	if c.Identity.IsNode() {
		isAllowed = k.anyone || node.OwnerOf(*in) == c.Owner()
	}
	if isAllowed {
		c.Node.Loads.Keep(*in, k.ttl(in.Spec.Model.Key))
	}
}

// owns reports whether the request's identity may decide about an instance.
func owns(c *endpoint.Call, in *supervisor.Info) bool {
	return c.Identity.May(access.ScopeModelsManage) || c.Owner() != "" && node.OwnerOf(*in) == c.Owner()
}

// unloadPatience is how long a request to unload waits for the end of the model's requests. The model is unloaded all the same.
const unloadPatience = 2 * time.Second

// UnloadModel unloads the instances of a model, or the one that is named.
func UnloadModel(c *endpoint.Call, target node.Target) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), unloadPatience)
	defer cancel()
	for _, in := range c.Node.Instances() {
		if in.Spec.Model.Key != target.Model.Key || target.Instance != "" && in.ID != target.Instance {
			continue
		}
		if !owns(c, &in) {
			return c.Authorize(c.Identity, access.ScopeModelsManage)
		}
		err := c.Node.Loads.Unload(ctx, in.ID)
		refused, _ := errors.AsType[schedule.Error](err)
		if err != nil && ctx.Err() == nil && refused.Kind != schedule.NoInstance { // it may have been unloaded meanwhile
			return err
		}
	}
	return nil
}
