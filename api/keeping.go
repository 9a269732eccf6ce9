package api

import (
	"context"
	"errors"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// shortly is how long a model is kept that isn't to be kept at all: it is unloaded as soon as it is idle.
const shortly = time.Millisecond

// keeping is what a request says of how long its model stays loaded after it.
type keeping struct {
	call     *endpoint.Call
	asked    *time.Duration // 0: not at all; negative: for ever; nil: the request doesn't say
	anyone   bool           // another node has sent the request, whose client may decide about any instance
	instance supervisor.Info
}

func newKeeping(c *endpoint.Call, asked *time.Duration) *keeping {
	return &keeping{call: c, asked: asked}
}

// isOver reports whether the model isn't to be kept at all.
func (k *keeping) isOver() bool { return k.asked != nil && *k.asked == 0 }

// lend sets how long the model stays loaded if this request loads it. It isn't unloaded between the attempts at one request: a time of 0
// begins with the end of the request.
func (k *keeping) lend(rq *modelRequest) {
	if k.asked != nil && *k.asked != 0 {
		ttl := max(0, *k.asked)
		rq.demand.TTL = boundTTL(k.call, &ttl, rq.target.Model.Key)
	}
	if k.asked != nil {
		rq.demand.Keep = &supervisor.Keep{TTL: k.ttl(rq.target.Model.Key), Own: !k.call.Identity.May(node.ScopeModelsManage)}
	}
}

// ttl is how long the model is kept after the request.
func (k *keeping) ttl(key string) time.Duration {
	ttl := max(0, *k.asked)
	if k.isOver() {
		ttl = shortly
	}
	return *boundTTL(k.call, &ttl, key)
}

// keptFor is what another node of the cluster says in the header of its request.
func keptFor(c *endpoint.Call, keep *supervisor.Keep) *keeping {
	if keep == nil {
		return nil
	}
	k := newKeeping(c, &keep.TTL)
	if keep.TTL == 0 { // unlimited
		k.asked = new(time.Duration(-1))
	}
	k.anyone = !keep.Own
	c.Ends = append(c.Ends, k.done)
	return k
}

// leased notes the instance that answers.
func (k *keeping) leased(lease *supervisor.Lease) { k.instance = lease.Instance }

// done sets how long the instance is kept from now on. An identity that may not manage models decides that for what it has loaded
// itself, and no longer than the settings do.
func (k *keeping) done() {
	in, c := &k.instance, k.call
	if k.asked == nil || in.Spec == nil {
		return
	}
	isAllowed := owns(c, in)
	if c.Identity.IsNode() {
		isAllowed = k.anyone || node.OwnerOf(*in) == c.Owner()
	}
	if isAllowed {
		c.Node.Keep(*in, k.ttl(in.Spec.Model.Key))
	}
}

// owns reports whether the request's identity may decide about an instance.
func owns(c *endpoint.Call, in *supervisor.Info) bool {
	return c.Identity.May(node.ScopeModelsManage) || c.Owner() != "" && node.OwnerOf(*in) == c.Owner()
}

// unloadPatience is how long a request to unload waits for the end of the model's requests. The model is unloaded all the same.
const unloadPatience = 2 * time.Second

// unloadModel unloads the instances of a model, or the one that is named.
func unloadModel(c *endpoint.Call, target node.Target) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), unloadPatience)
	defer cancel()
	for _, in := range c.Node.Instances() {
		if in.Spec.Model.Key != target.Model.Key || target.Instance != "" && in.ID != target.Instance {
			continue
		}
		if !owns(c, &in) {
			return c.Authorize(c.Identity, node.ScopeModelsManage)
		}
		err := c.Node.Unload(ctx, in.ID)
		refused, _ := errors.AsType[supervisor.Error](err)
		if err != nil && ctx.Err() == nil && refused.Kind != supervisor.NoInstance { // it may have been unloaded meanwhile
			return err
		}
	}
	return nil
}
