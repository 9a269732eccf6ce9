package api

import (
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// maxTTL is the longest ttl that makes sense, in seconds: some 30 years.
const maxTTL = 1_000_000_000

// modelRequest is what every endpoint that asks a model something begins with: the scanned body, and the model that it is for.
type modelRequest struct {
	body   *jsonbody.Body
	target node.Target
	engine wire.Engine
	caps   request.Caps
	demand node.Demand // ttl and draft_model; the slots are the endpoint's to say

	stream       bool
	includeUsage bool // stream_options.include_usage
}

// request reads the body and finds the model. Nothing is loaded yet.
func (c *call) request() (*modelRequest, error) { return c.requestWith(openai.WithDefaults) }

// requestWith is request where a preset is applied in another way. The token's limits come before the body: a request that
// is refused costs no memory.
func (c *call) requestWith(apply applyPreset) (*modelRequest, error) {
	if err := c.admit(); err != nil {
		return nil, err
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	plain := body
	if body, err = c.withPreset(plain, apply); err != nil {
		return nil, err
	}
	if body != plain {
		if err := c.claim.Grow(int64(len(body.Raw))); err != nil {
			return nil, err
		}
	}
	rq := &modelRequest{body: body}
	if rq.stream, rq.includeUsage, err = streamOptions(body); err != nil {
		return nil, err
	}
	if rq.demand, err = demand(body); err != nil {
		return nil, err
	}
	rq.demand.Owner = c.owner()
	if rq.target, err = c.asked(body); err != nil {
		return nil, err
	}
	if rq.demand.Draft != "" {
		draft, err := c.find(rq.demand.Draft)
		if err != nil {
			return nil, about("draft_model", c.asError(err))
		}
		rq.demand.Draft = draft.Model.Key
	}
	rq.demand.TTL = c.boundTTL(rq.demand.TTL, rq.target.Model.Key)
	rq.engine = c.node.Wire(rq.target.Model)
	rq.caps = c.node.Caps(rq.target.Model)
	return rq, nil
}

// boundTTL is a request's ttl, but no longer than the settings have it: to keep a model loaded for longer takes the right to
// load it.
func (c *call) boundTTL(ttl *time.Duration, key string) *time.Duration {
	if ttl == nil || c.who.May(node.ScopeModelsManage) {
		return ttl
	}
	if longest := c.node.LongestTTL(key); longest > 0 && (*ttl <= 0 || *ttl > longest) {
		return &longest
	}
	return ttl
}

// about makes another field the one that an error is about.
func about(param string, e *translate.Error) *translate.Error {
	other := *e
	other.Param = param
	return &other
}

// model is the name of the model that a body asks for.
func model(body *jsonbody.Body) (string, error) {
	name, bad := body.String("model")
	if bad != nil {
		return "", bad
	}
	if name == "" {
		return "", translate.Missing("model")
	}
	return name, nil
}

// bodyAndModel reads the body of a request about a model that it doesn't ask anything.
func (c *call) bodyAndModel() (*jsonbody.Body, string, error) {
	body, err := c.body()
	if err != nil {
		return nil, "", err
	}
	name, err := model(body)
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

// demand reads the fields by which a request says how its model is to be loaded.
func demand(body *jsonbody.Body) (node.Demand, error) {
	var d node.Demand
	seconds, given, bad := body.Int("ttl")
	switch {
	case bad != nil:
		return d, bad
	case !given:
	case seconds < -1 || seconds > maxTTL:
		return d, translate.Invalid("invalid_value", "ttl", fmt.Sprintf(`"ttl" must be a number of seconds from 0 to %d, where 0 or -1 keeps the model for ever.`, maxTTL))
	default:
		ttl := time.Duration(max(seconds, 0)) * time.Second
		d.TTL = &ttl
	}
	if d.Draft, bad = body.String("draft_model"); bad != nil {
		return d, bad
	}
	return d, nil
}
