package api

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// used counts the tokens of the request, if an engine has begun to answer it.
func (rq *modelRequest) used(u translate.Usage) {
	rq.call.Ledger.Summary.Usage = u
	if rq.answered.Load() && !rq.call.Identity.IsNode() { // the node that sends the request counts it
		rq.call.Node.Used(rq.call.Identity, rq.target.Model.Key, u)
	}
}

// maxTTL is the longest ttl, in seconds: about 30 years.
const maxTTL = 1_000_000_000

// modelRequest is a request to a model: the scanned body, the model that it names, and what its upstream requests have in common.
type modelRequest struct {
	call   *endpoint.Call
	body   *jsonbody.Body
	target node.Target
	engine wire.Engine
	caps   request.Caps
	demand node.Demand // ttl and draft_model; the endpoint sets the slots

	stream       bool
	includeUsage bool // stream_options.include_usage

	kept      *keeping     // how long another node, whose request this is, wants the model to be kept; nil: it doesn't say
	made      int          // bytes that are counted for what reserve was last told of
	unreserve func()       // gives back the tokens that are reserved
	gathered  atomic.Int64 // bytes of answers in memory
	answered  atomic.Bool  // an engine has begun to answer
	prompts   promptCounts
	counting  func(*engineResponse, translate.Prompt) // called with the progress of a prompt that is being counted; may be nil
}

// readRequest reads the body and finds the model. It loads nothing.
func readRequest(c *endpoint.Call) (*modelRequest, error) {
	return requestWith(c, openai.WithDefaults, nil)
}

// textRequest is requestWith for a model that generates text.
func textRequest(c *endpoint.Call, apply applyPreset, check func(*jsonbody.Body) error) (*modelRequest, error) {
	rq, err := requestWith(c, apply, check)
	if err == nil && rq.target.Model.Type == catalog.TypeEmbedding {
		return nil, wrongModel(rq.target.Model, "generates no text: choose a language model.")
	}
	return rq, err
}

// requestWith is request with another way to apply a preset. The token's limits are checked before the body is read, so that a
// request that is refused costs no memory. check refuses a body before anything is done with it; nil: it refuses none.
func requestWith(c *endpoint.Call, apply applyPreset, check func(*jsonbody.Body) error) (*modelRequest, error) {
	c.Ledger.ToModel = true
	if err := c.Admit(); err != nil {
		return nil, err
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(body); err != nil {
			return nil, err
		}
	}
	plain := body
	if body, err = withPreset(c, plain, apply); err != nil {
		return nil, err
	}
	if body != plain {
		if err := c.Claim.Grow(int64(len(body.Raw))); err != nil {
			return nil, err
		}
	}
	rq := &modelRequest{call: c, body: body}
	if rq.stream, rq.includeUsage, err = streamOptions(body); err != nil {
		return nil, err
	}
	if rq.demand, err = demand(body); err != nil {
		return nil, err
	}
	rq.demand.Owner, rq.demand.Unsaved, rq.demand.Local = c.Owner(), isUnsaved(body), c.Identity.IsNode()
	if c.Identity.IsNode() {
		rq.demand.TTL = node.PeerTTL(c.Request.Header)
		rq.kept = keptFor(c, node.PeerKeep(c.Request.Header))
	}
	if rq.target, err = asked(c, body); err != nil {
		return nil, err
	}
	c.Ledger.Summary.Model = rq.target.Model.Key
	if rq.demand.Draft != "" {
		draft, err := c.FindDraft(rq.target.Model.Key, rq.demand.Draft)
		if err != nil {
			return nil, about("draft_model", c.Error(err))
		}
		rq.demand.Draft = draft.Model.Key
	}
	rq.demand.TTL = boundTTL(c, rq.demand.TTL, rq.target.Model.Key)
	rq.caps = c.Node.Caps(rq.target.Model)
	rq.engine = c.Node.Wire(rq.target.Model)
	c.BeginRequest()
	return rq, nil
}

// isUnsaved reports whether a client says that nothing of its prompt is kept. Any other value of these fields is the default, or ignored.
func isUnsaved(body *jsonbody.Body) bool {
	return string(body.Value("store")) == "false" || string(body.Value("cache_prompt")) == "false"
}

// boundTTL is a request's ttl, but no longer than the one in the settings: to keep a model loaded for longer takes the right
// to load models.
func boundTTL(c *endpoint.Call, ttl *time.Duration, key string) *time.Duration {
	if ttl == nil || c.Identity.May(node.ScopeModelsManage) {
		return ttl
	}
	if longest := c.Node.LongestTTL(key); longest > 0 && (*ttl <= 0 || *ttl > longest) {
		return &longest
	}
	return ttl
}

// wrongModel is the error of a request whose model is of another kind than the endpoint's.
func wrongModel(m catalog.Model, why string) error {
	return translate.Invalid("unsupported_model", "model", "The model "+m.Key+" "+why)
}

// wrongEngine is the error of a request whose model is run by an engine that can't do what the endpoint is for.
func wrongEngine(m catalog.Model, why string) *translate.Error {
	return translate.Invalid("unsupported_model", "model", "The engine of the model "+m.Key+" "+why)
}

// fieldNames are what a dialect calls the fields of an engine's request.
type fieldNames map[string]string

// refine makes the field that an error is about one of the dialect.
func (n fieldNames) refine(e *translate.Error) *translate.Error {
	if name, ok := n[e.Param]; ok {
		return about(name, e)
	}
	return e
}

// refined is an error as a request words it.
func refined(err error, refine func(*translate.Error) *translate.Error) error {
	if known, ok := errors.AsType[*translate.Error](err); ok {
		return refine(known)
	}
	return err
}

// about returns the error with another field as the one at fault.
func about(param string, e *translate.Error) *translate.Error {
	other := *e
	other.Param = param
	return &other
}

// bodyAndModel reads the body of a request that manages a model.
func bodyAndModel(c *endpoint.Call) (*jsonbody.Body, string, error) {
	body, err := c.Body()
	if err != nil {
		return nil, "", err
	}
	name, err := endpoint.ModelName(body)
	return body, name, err
}

func streamOptions(body *jsonbody.Body) (stream, includeUsage bool, _ error) {
	stream, bad := body.Bool("stream")
	if bad != nil {
		return false, false, bad
	}
	options := body.Get("stream_options")
	switch {
	case !options.Exists(), options.Raw == "null":
		return stream, false, nil
	case !options.IsObject():
		return false, false, translate.Invalid("invalid_type", "stream_options", `"stream_options" must be an object.`)
	}
	include := options.Get("include_usage")
	if include.Exists() && include.Raw != "null" && !include.IsBool() {
		return false, false, translate.Invalid("invalid_type", "stream_options.include_usage", `"stream_options.include_usage" must be a boolean.`)
	}
	return stream, include.Bool(), nil
}

// demand reads the fields that say how the model is loaded.
func demand(body *jsonbody.Body) (node.Demand, error) {
	var d node.Demand
	var bad *translate.Error
	if d.TTL, bad = timeToLive(body); bad != nil {
		return d, bad
	}
	if d.Draft, bad = body.String("draft_model"); bad != nil {
		return d, bad
	}
	return d, nil
}
