package text

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// reserve reserves, until the request ends, the tokens that it may use of its token's daily limit. It counts the memory of made
// bytes, and notes how long the prompts may be. Another call takes the place of the last one. each is the number of tokens that a
// choice may have; negative: as many as the request says.
func (rq *Request) reserve(need access.Need, made int) (each int, _ error) {
	rq.Call.Claim.Shrink(int64(rq.made))
	rq.made = 0
	if err := rq.Call.Claim.Grow(int64(made)); err != nil {
		return 0, err
	}
	rq.made = made
	if rq.unreserve == nil {
		rq.Call.Ends = append(rq.Call.Ends, func() { rq.unreserve() })
	} else {
		rq.unreserve()
	}
	rq.unreserve = func() {}
	rq.Demand.Needs(need)
	each, done, err := rq.Call.Node.Loads.Reserve(rq.Call.Request.Context(), rq.Call.Identity, &rq.Target.Model, rq.Demand, need)
	if err != nil {
		return 0, err
	}
	rq.unreserve = done
	if need.Completion >= 0 && each >= need.Completion {
		return -1, nil
	}
	return each, nil
}

// ReserveChat is reserve for a chat, whose prompt it notes. It also refuses a chat that the engine can't do. body is what the engine is
// sent; spent is the number of tokens that earlier rounds have used.
func (rq *Request) ReserveChat(body *jsonbody.Body, chat *request.Chat, spent int) error {
	chat.NoTools = !chat.OffersTools(body)
	if bad := rq.Engine.CheckChat(body, chat); bad != nil {
		return bad
	}
	if err := rq.fits("messages", len(body.Raw), func() int { return request.PromptBytes(body) }); err != nil {
		return err
	}
	made := 0
	if body != rq.Body {
		made = len(body.Raw)
	}
	need := access.Need{Bytes: len(body.Raw), Prompts: 1, Choices: chat.N, Completion: request.TokenLimit(body.Fields()), Spent: spent}
	each, err := rq.reserve(need, made)
	if err == nil && each >= 0 {
		chat.LimitTokens(each)
	}
	rq.Demand.Prompt = rq.Chain(func(m *prefix.Maker) { wire.AddChat(body, chat, m) })
	rq.Demand.Affinity = schedule.AffinityOf([]byte(rq.Call.Owner()), wire.ChatHead(body, chat)...)
	return err
}

// ReserveCompletion is reserve for text completions by an engine that is a [wire.Completer]: each candidate's request has a copy of the
// body. It also refuses a request that the engine can't do.
func (rq *Request) ReserveCompletion(ask *request.Completion) error {
	if bad := rq.Engine.(wire.Completer).CheckCompletion(rq.Body, ask); bad != nil {
		return bad
	}
	if err := rq.fits("prompt", len(rq.Body.Raw), ask.PromptBytes); err != nil {
		return err
	}
	candidates := len(ask.Prompts) * ask.BestOf
	need := access.Need{Bytes: len(rq.Body.Raw), Prompts: len(ask.Prompts), Choices: candidates, Completion: ask.MaxTokens}
	if len(ask.Prompts) > 0 {
		text := ask.Prompts[0]
		rq.Demand.Affinity = schedule.AffinityOf([]byte(rq.Call.Owner()), text[:min(len(text), textHead)])
	}
	each, err := rq.reserve(need, min(candidates, ChoicesAtOnce)*len(rq.Body.Raw))
	if err == nil && each >= 0 {
		ask.LimitTokens(each)
	}
	return err
}

const textHead = 256 // how many bytes of a text tell which texts it belongs with

// NewCompletion is ReserveCompletion for a request with one answer. It returns the task of generating it.
func (rq *Request) NewCompletion(ask *request.Completion) (*CompletionTask, error) {
	if _, ok := rq.Engine.(wire.Completer); !ok {
		return nil, CompletesNothing(rq.Target.Model)
	}
	rq.Demand.Prompt = rq.Chain(func(m *prefix.Maker) { wire.AddText(ask, 0, m) })
	return &CompletionTask{Model: &rq.Target.Model, Body: rq.Body, Completion: ask}, rq.ReserveCompletion(ask)
}

// fits refuses a prompt that is longer than any context, which an engine may take a minute to find out. Short ones aren't checked.
func (rq *Request) fits(param string, size int, text func() int) error {
	const short = 128 << 10
	if size < short {
		return nil
	}
	least, limit, err := rq.Call.Node.Loads.LeastTokens(rq.Call.Request.Context(), rq.Target, rq.Demand, size)
	if err == nil && limit > 0 && least > limit { // most prompts fit even if all of the body were text
		least, limit, err = rq.Call.Node.Loads.LeastTokens(rq.Call.Request.Context(), rq.Target, rq.Demand, text())
	}
	if err != nil || limit == 0 || least <= limit {
		return err
	}
	return translate.SurelyTooLong(param, least, limit)
}

// ReserveTexts is reserve for texts that aren't continued, whose parts together are about as large as the body.
func (rq *Request) ReserveTexts(texts, bytes int) error {
	_, err := rq.reserve(access.Need{Bytes: bytes, Prompts: texts}, len(rq.Body.Raw))
	return err
}

// Chain returns the chain of a prompt that a function adds; nil if nothing depends on it.
func (rq *Request) Chain(add func(*prefix.Maker)) prefix.Chain {
	key, ok := rq.Call.Node.Engines.PromptKey(&rq.Target.Model)
	if _, pins := rq.Engine.(wire.Pinner); !ok || !pins {
		return nil
	}
	m := prefix.New(key)
	if a := rq.Target.Adapter; a != nil { // the same words have other states
		m.Message(fmt.Appendf(nil, "adapter %s %d %d", a.Key, a.SizeBytes, a.Changed.UnixNano()))
	}
	add(m)
	return m.Chain()
}

const shortly = time.Millisecond // how long a model is kept that isn't to be kept at all: it is unloaded as soon as it is idle

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

// Apply sets how long the model stays loaded if this request loads it. A time of 0 begins with the end of the request.
func (k *KeepAlive) Apply(rq *Request) {
	if k.asked != nil && *k.asked != 0 {
		ttl := max(0, *k.asked)
		rq.Demand.TTL = limitTTL(k.call, &ttl, rq.Target.Model.Key)
	}
	if k.asked != nil {
		mayUnload := k.call.Identity.May(access.ScopeModelsManage)
		rq.Demand.Retention = &schedule.Retention{TTL: k.ttl(rq.Target.Model.Key), OnlyOwned: !mayUnload}
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

// End sets how long the instance is kept from now on, if the identity may decide that, and no longer than the settings do.
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
