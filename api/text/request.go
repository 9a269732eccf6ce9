package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// TimeToLive reads the field ttl, in seconds; nil: it isn't given.
func TimeToLive(fields *jsonbody.Reader) *time.Duration {
	seconds, given := fields.Int("ttl")
	if !given {
		return nil
	}
	if seconds < -1 || seconds > maxTTL {
		fields.Refuse(translate.BadValue("ttl",
			"must be a number of seconds from 0 to %d, where 0 or -1 keeps the model for ever.", maxTTL))
	}
	return new(time.Duration(max(seconds, 0)) * time.Second)
}

// CountUsage counts the tokens of the request, if an engine has begun to answer it.
func (rq *Request) CountUsage(u translate.Usage) {
	rq.Call.Ledger.Summary.Usage = u
	if rq.answered.Load() && !rq.Call.Identity.IsNode() { // the node that sends the request counts it
		rq.Call.Node.Access.Quota.Used(rq.Call.Identity, rq.Target.Model.Key, u)
	}
}

const maxTTL = 1_000_000_000 // the longest ttl, in seconds: about 30 years

// Request is a request to a model: the scanned body, the model that it names, and what its upstream requests have in common.
type Request struct {
	Call   *endpoint.Call
	Body   *jsonbody.Body
	Target node.Target
	Engine wire.Engine
	Caps   request.Caps
	Demand node.Demand // ttl and draft_model; the endpoint sets the slots

	Streams      bool
	IncludeUsage bool // stream_options.include_usage

	keepAlive *KeepAlive   // how long another node, whose request this is, wants the model to be kept; nil: it doesn't say
	made      int          // bytes that are counted for what reserve was last told of
	unreserve func()       // gives back the tokens that are reserved
	gathered  atomic.Int64 // bytes of answers in memory
	answered  atomic.Bool  // an engine has begun to answer
	prompts   promptCounts
	Counting  func(*Response, translate.Prompt) // called with the progress of a prompt that is being counted; may be nil
}

// Read is ReadAny for a model that generates text.
func Read(c *endpoint.Call, apply applyPreset, check func(*jsonbody.Body) error) (*Request, error) {
	rq, err := ReadAny(c, apply, check)
	if err == nil && rq.Target.Model.Type == catalog.TypeEmbedding {
		return nil, WrongModel(rq.Target.Model, "generates no text: choose a language model.")
	}
	return rq, err
}

// ReadAny reads the body and finds the model. It loads nothing. The token's limits are checked first, so that a refused request costs no
// memory. apply adds the defaults of a preset; check refuses a body before anything is done with it, nil: it refuses none.
func ReadAny(c *endpoint.Call, apply applyPreset, check func(*jsonbody.Body) error) (*Request, error) {
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
	rq := &Request{Call: c, Body: body}
	fields := body.Fields()
	rq.Streams, rq.IncludeUsage = fields.Bool("stream"), includesUsage(fields)
	rq.Demand.TTL, rq.Demand.Draft = TimeToLive(fields), fields.Text("draft_model")
	if fields.Err != nil {
		return nil, fields.Err
	}
	rq.Demand.Owner, rq.Demand.Here = c.Owner(), c.Identity.IsNode()
	rq.Demand.Unsaved = string(body.Value("store")) == "false" || string(body.Value("cache_prompt")) == "false"
	if c.Identity.IsNode() {
		rq.Demand.TTL = remote.ParseTTL(c.Request.Header)
		rq.keepAlive = peerKeepAlive(c, remote.ParseRetention(c.Request.Header))
	}
	if rq.Target, err = findModel(c, body); err != nil {
		return nil, err
	}
	if rq.Target, err = c.Node.Names.WithAdapter(c.Request.Context(), rq.Target); err != nil {
		return nil, err
	}
	c.Ledger.Summary.Model = rq.Target.Model.Key
	if rq.Demand.Draft != "" {
		draft, err := c.FindDraft(rq.Target.Model.Key, rq.Demand.Draft)
		if err != nil {
			return nil, withParam("draft_model", c.Error(err))
		}
		rq.Demand.Draft = draft.Model.Key
	}
	rq.Demand.TTL = limitTTL(c, rq.Demand.TTL, rq.Target.Model.Key)
	rq.Caps = c.Node.Engines.Caps(rq.Target.Model)
	rq.Engine = c.Node.Engines.Wire(rq.Target.Model)
	c.BeginRequest()
	return rq, nil
}

// limitTTL is a request's ttl, but no longer than the settings': more takes the right to load models.
func limitTTL(c *endpoint.Call, ttl *time.Duration, key string) *time.Duration {
	if ttl == nil || c.Identity.May(access.ScopeModelsManage) {
		return ttl
	}
	if longest := c.Node.Loads.LongestTTL(key); longest > 0 && (*ttl <= 0 || *ttl > longest) {
		return &longest
	}
	return ttl
}

// WrongModel is the error of a request whose model is of another kind than the endpoint's.
func WrongModel(m catalog.Model, why string) error {
	return translate.Invalid("unsupported_model", "model", "The model "+m.Key+" "+why)
}

// WrongEngine is the error of a request whose model is run by an engine that can't do what the endpoint is for.
func WrongEngine(m catalog.Model, why string) *translate.Error {
	return translate.Invalid("unsupported_model", "model", "The engine of the model "+m.Key+" "+why)
}

// EngineFor is an engine as what a request needs. The error says what else it is for.
func EngineFor[E any](rq *Request, engine wire.Engine, why string) (E, *translate.Error) {
	e, ok := engine.(E)
	if !ok {
		return e, WrongEngine(rq.Target.Model, why)
	}
	return e, nil
}

// FieldNames are what a dialect calls the fields of an engine's request.
type FieldNames map[string]string

// Refine makes the field that an error is about one of the dialect.
func (n FieldNames) Refine(e *translate.Error) *translate.Error {
	if name, ok := n[e.Param]; ok {
		return withParam(name, e)
	}
	return e
}

// Refined is an error as a request words it.
func Refined(err error, refine func(*translate.Error) *translate.Error) error {
	if known, ok := errors.AsType[*translate.Error](err); ok {
		return refine(known)
	}
	return err
}

func withParam(param string, e *translate.Error) *translate.Error {
	other := *e
	other.Param = param
	return &other
}

// BodyAndModel reads the body of a request that manages a model, which is named in one of some fields; none: in "model".
func BodyAndModel(c *endpoint.Call, fields ...string) (*jsonbody.Body, string, error) {
	body, err := c.Body()
	if err != nil {
		return nil, "", err
	}
	name, err := endpoint.ModelName(body, fields...)
	return body, name, err
}

func includesUsage(fields *jsonbody.Reader) bool {
	options := fields.Get("stream_options")
	if !jsonbody.IsGiven(options) {
		return false
	}
	if jsonbody.TypeOf(options) != jsonbody.AnObject {
		fields.Refuse(translate.Refused("invalid_type", "stream_options", "must be an object."))
		return false
	}
	include := gjson.GetBytes(options, "include_usage")
	if include.Type != gjson.Null && !include.IsBool() {
		fields.Refuse(translate.Refused("invalid_type", "stream_options.include_usage", "must be a boolean."))
	}
	return include.Bool()
}

// findModel is the model that a request names, or, if the settings say so, the only one that it can mean.
func findModel(c *endpoint.Call, body *jsonbody.Body) (node.Target, error) {
	name, err := endpoint.ModelName(body)
	if err == nil {
		target, failed := c.Find(name)
		if err = failed; err == nil {
			return target, nil
		}
	}
	bad, _ := errors.AsType[*translate.Error](err)
	_, isUnknown := errors.AsType[*catalog.NotFoundError](err)
	isMissing, isAny := bad != nil && bad.Code == translate.Missing("model").Code, c.Node.Settings().AnyName
	if (!isMissing || !isAny && !c.Dialect.OnlyModel) && (!isUnknown || !isAny) {
		return node.Target{}, err
	}
	key, failed := OnlyModel(c)
	switch {
	case failed != nil:
		return node.Target{}, failed
	case key == "":
		return node.Target{}, err
	}
	return c.Find(key)
}

// OnlyModel is the key of the only model that is loaded, or is being loaded, among those that suit the request's path and that its
// identity may use. If none is loaded, it is the only such model in the catalog. It is empty if there are several.
func OnlyModel(c *endpoint.Call) (string, error) {
	path := c.Request.URL.Path
	ranks := strings.HasSuffix(path, "/rerank") || strings.HasSuffix(path, "/reranking")
	embeds := strings.HasSuffix(path, "/embeddings") || strings.HasSuffix(path, "/embed")
	suits := func(m *catalog.Model) bool {
		return (m.Type == catalog.TypeEmbedding) == (ranks || embeds) && m.Reranker == ranks &&
			(m.Audio || !strings.HasSuffix(path, "/transcriptions"))
	}
	var keys []string
	for _, in := range c.Node.Instances() {
		m, isThere := in.Spec.Model, in.Spec.Remote == nil || in.IsLoaded()
		if isThere && suits(&m) && c.Identity.MayUse(m.FullKey()) && !in.Status.IsLeaving() {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) == 0 {
		models, err := c.Models()
		if err != nil {
			return "", err
		}
		for i := range models {
			if suits(models[i].Model) {
				keys = append(keys, models[i].Key)
			}
		}
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 1 {
		return "", nil
	}
	return keys[0], nil
}

// applyPreset adds the defaults of the preset that the field chosenBy names.
type applyPreset func(body *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error)

// withPreset returns the body with the defaults of the preset that it names, or else of its model's.
func withPreset(c *endpoint.Call, body *jsonbody.Body, apply applyPreset) (*jsonbody.Body, error) {
	fields := body.Fields()
	name, bad := fields.Text("preset"), fields.Err
	presets := c.Node.Settings().Presets
	defaults, isKnown := presets[name]
	switch custom, isCustom := c.Node.Names.Custom(jsonbody.Unquote(body.Value("model"))); {
	case bad != nil:
	case name == "" && isCustom && len(custom.Defaults) > 0 && c.Identity.MayUse(custom.Model): // a client has made the model
		body, bad = apply(body, "", custom.Defaults)
	case name == "" && len(presets) == 0:
		return body, nil
	case name == "":
		target, err := findModel(c, body)
		defaults = c.Node.Names.Preset(target.Model.Key)
		if err != nil || len(defaults) == 0 { // the error shows later
			return body, nil //nolint:nilerr // see above
		}
		body, bad = apply(body, "", defaults)
	case isKnown:
		body, bad = apply(body, "preset", defaults)
	case len(presets) == 0:
		bad = translate.Invalid("unknown_preset", "preset",
			fmt.Sprintf(`There is no preset %q: none is configured. Leave out "preset", or add it to the Caddyfile.`, name))
	default:
		have := strings.Join(slices.Sorted(maps.Keys(presets)), ", ")
		bad = translate.Invalid("unknown_preset", "preset", fmt.Sprintf("There is no preset %q. There are: %s.", name, have))
	}
	if bad != nil {
		return nil, bad
	}
	return body, nil
}
