package manage

import (
	"errors"
	"regexp"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// configOf has what can be chosen of a load of the instance's model.
func configOf(in supervisor.Info, can process.Choices) resource.LoadConfig {
	c := resource.LoadConfig{ContextLength: in.Spec.ContextLength}
	if can.Parallel && node.IsParallelGiven(in) {
		c.Parallel = new(in.Spec.Parallel)
	}
	if can.BatchSize {
		c.BatchSize = new(in.Batch)
	}
	if can.FlashAttention {
		c.FlashAttention = new(in.FlashAttention())
	}
	if can.Experts {
		c.Experts = new(in.Experts())
	}
	if can.OffloadKV {
		c.OffloadKV = new(in.Spec.OffloadKV != schedule.Off && !in.IsOnProcessor())
	}
	return c
}

// load is POST /api/v1/models/load. Each request loads another instance.
func load(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c)
	if err != nil {
		return err
	}
	fields := body.Fields()
	options := loadOptions(fields)
	echo, estimate := fields.Bool("echo_load_config"), fields.Bool("estimate_only")
	if fields.Err != nil {
		return fields.Err
	}
	options.Owner = c.Owner()
	target, err := c.Find(name)
	if err != nil {
		return err
	}
	if estimate {
		f, err := c.Node.Loads.Forecast(c.Request.Context(), target.Model, options)
		if err != nil {
			return err
		}
		return c.Answer(loadEstimate(c, &f, options))
	}
	load := func(progress *supervisor.Notifier) (*resource.Loaded, error) {
		loaded, err := c.Node.Loads.LoadAt(c.Request.Context(), target, options, progress)
		if err != nil {
			return nil, err
		}
		answer := &resource.Loaded{
			Type: string(target.Model.Type), Instance: loaded.ID, Seconds: loaded.LoadTime.Seconds(), Status: "loaded",
		}
		if loaded.IsSplit() {
			answer.Placement = loaded.Placed()
		}
		if echo {
			answer.Config = new(configOf(loaded, c.Node.Engines.Choices(loaded)))
		}
		return answer, nil
	}
	if kinds := strings.Join(c.Request.Header.Values("Accept"), ","); strings.Contains(kinds, "text/event-stream") &&
		!strings.Contains(kinds, ",") {
		return streamLoad(c, load)
	}
	answer, err := load(nil)
	if err != nil {
		return err
	}
	return c.Answer(answer)
}

// unload is POST /api/v1/models/unload.
func unload(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	fields := body.Fields()
	name := fields.Required("instance_id")
	if fields.Err != nil {
		return fields.Err
	}
	if hidesInstance(c, name) {
		return schedule.UnknownInstance(name)
	}
	id := c.Node.Names.InstanceID(c.Request.Context(), name)
	if !endpoint.MayUseInstance(c, id) {
		return schedule.UnknownInstance(name)
	}
	if err := c.Node.Loads.Unload(c.Request.Context(), id); err != nil {
		return err
	}
	return c.Answer(map[string]string{"instance_id": id})
}

// hidesInstance reports whether a name of an instance is one that the request's identity may not use.
func hidesInstance(c *endpoint.Call, name string) bool {
	if !c.IsRestricted() {
		return false
	}
	_, err := c.Find(name)
	_, isMissing := errors.AsType[*catalog.NotFoundError](err)
	return isMissing
}

// streamLoad answers a load by its progress. A load that fails before anything was sent is answered by a status.
func streamLoad(c *endpoint.Call, load func(*supervisor.Notifier) (*resource.Loaded, error)) error {
	s := c.NewStream()
	defer s.Close()
	var events native.LoadStream
	notifier := supervisor.NewNotifier()
	end := text.TellProgress(c.Request.Context(), notifier.C(), func(p supervisor.Progress) {
		s.Send(events.Append(nil, translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded}))
	})
	defer end()
	result, err := load(notifier)
	end()
	s.Close() // from here on nobody else writes
	switch {
	case err == nil:
		s.Send(events.End(nil, result.Instance, result.Seconds, result))
		return nil
	case c.Request.Context().Err() != nil || !c.Begun:
		return err
	}
	e := c.Error(err)
	c.Site.Log.Warn("a stream failed", "request", c.ID, "error", e)
	c.Ledger.Failed(e)
	s.Send(events.Fail(nil, e))
	return nil
}

// remove is DELETE /api/v1/models/{key}: it deletes the model's files.
func remove(c *endpoint.Call) error {
	if _, err := c.Find(c.Param); err != nil && c.IsRestricted() {
		return err // which doesn't reveal whether there is such a model
	}
	key, err := endpoint.Remove(c, c.Param, c.Param)
	if err != nil {
		return err
	}
	return c.Answer(map[string]string{"key": key})
}

const (
	maxLoadNumber = 1 << 30 // bounds the numbers of a load, so that none overflows before it reaches an engine
	maxParallel   = 1024    // the most requests that a load may ask an instance to answer at a time
	maxInstanceID = 128     // the length of the longest identifier, in bytes
)

// loadOptions reads the fields of a load that say how the model is loaded.
func loadOptions(fields *jsonbody.Reader) (o node.LoadOptions) {
	for _, field := range []struct {
		name string
		to   *int
		most int
	}{
		{"context_length", &o.ContextLength, maxLoadNumber},
		{"eval_batch_size", &o.BatchSize, maxLoadNumber},
		{"num_experts", &o.Experts, maxLoadNumber},
		{"parallel", &o.Parallel, maxParallel},
	} {
		n, given := fields.Int(field.name)
		if given && (n < 1 || n > field.most) {
			fields.Refuse(translate.BadValue(field.name, "must be from 1 to %d, and no more than the model can have.", field.most))
		}
		*field.to = n
	}
	if on := fields.MaybeBool("flash_attention"); on != nil {
		o.FlashAttention = schedule.ToggleOf(*on)
	}
	if on := fields.MaybeBool("offload_kv_cache_to_gpu"); on != nil {
		o.OffloadKV = schedule.ToggleOf(*on)
	}
	o.Pinned, o.TTL, o.ID = fields.MaybeBool("pinned"), text.TimeToLive(fields), fields.Text("identifier")
	if jsonbody.IsGiven(fields.Get("identifier")) && (len(o.ID) > maxInstanceID || !isInstanceID(o.ID)) {
		fields.Refuse(translate.BadValue("identifier",
			"must have 1 to %d characters: letters and digits of English, and - _ . : / + @.", maxInstanceID))
	}
	return o
}

var isInstanceID = regexp.MustCompile(`^[A-Za-z0-9._:/+@-]+$`).MatchString

// pin is POST /api/v1/models/pin: whether an instance, or all of a model, may be unloaded for other models.
func pin(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	fields := body.Fields()
	pinned, model, instance := fields.MaybeBool("pinned"), fields.Text("model"), fields.Text("instance_id")
	if pinned == nil {
		fields.Refuse(translate.Missing("pinned"))
	}
	if fields.Err != nil {
		return fields.Err
	}
	instances, err := instancesToPin(c, model, instance)
	if err != nil {
		return err
	}
	answer := resource.Pinned{Model: instances[0].Spec.Model.Key, Pinned: *pinned}
	for _, in := range instances {
		if err := c.Node.Loads.Pin(c.Request.Context(), in, *pinned); err != nil {
			return err
		}
		answer.Instances = append(answer.Instances, in.ID)
	}
	return c.Answer(answer)
}

// instancesToPin are the instances with the name of a model, or with an id: at least one, of one model.
func instancesToPin(c *endpoint.Call, name, id string) ([]supervisor.Info, error) {
	switch {
	case name == "" && id == "":
		return nil, translate.Missing("model")
	case name != "" && id != "":
		return nil, translate.Invalid("invalid_value", "instance_id",
			`Give either "model", which means all its instances, or "instance_id".`)
	case id != "":
		in := endpoint.Instance(c, c.Node.Names.InstanceID(c.Request.Context(), id)) // an id, a number, or another name of this one alone
		if hidesInstance(c, id) || in.ID == "" || !c.Identity.MayUse(in.Spec.Model.FullKey()) {
			return nil, schedule.UnknownInstance(id)
		}
		return []supervisor.Info{in}, nil
	}
	target, err := c.Find(name)
	if err != nil {
		return nil, err
	}
	var found []supervisor.Info
	for _, in := range c.Node.Instances() {
		isNamed := target.Instance == "" || target.Instance == in.ID
		isHere := in.Spec.Remote == nil || target.Model.IsRemote || target.Instance != ""
		if isNamed && isHere && in.Spec.Model.Key == target.Model.Key && (!in.Status.IsLeaving() || in.Leaving == schedule.ForRoom) {
			found = append(found, in)
		}
	}
	if len(found) == 0 {
		return nil, translate.NewError(translate.KindModelNotFound, "model_not_loaded", "model", "The model "+target.Model.Key+
			` isn't loaded, so it can't be pinned. Load it with POST /api/v1/models/load, which takes "pinned", too.`)
	}
	return found, nil
}

func loadEstimate(c *endpoint.Call, f *node.Forecast, o node.LoadOptions) resource.LoadEstimate {
	out := &f.Outlook
	e := resource.LoadEstimate{
		Type: string(f.Spec.Model.Type), Model: f.Spec.Model.Key, Status: "estimated", Config: plannedConfig(f, o), Slots: f.Spec.Parallel,
		Memory: memoryEstimate(f), Fits: out.Refused == nil, Evicts: []string{}, Shrinks: []string{}, Waits: out.Waits,
	}
	if out.Limits.Memory > 0 {
		e.Budget, e.Free = &out.Limits.Memory, new(max(0, out.Limits.Memory-out.Taken[0].Bytes))
	}
	e.Devices = []resource.EstimateDevice{}
	for _, d := range out.Devices() {
		e.Devices = append(e.Devices, resource.EstimateDevice{Name: d.Device, Needed: d.Needed, Budget: d.Budget, Taken: d.Taken})
	}
	if out.Refused != nil {
		e.Reason = out.Refused.Message
	}
	if out.Loads != nil {
		e.Placement = out.On.String()
		if out.Loads != f.Spec {
			e.Smaller = &resource.SmallerLoad{Slots: out.Loads.Parallel, ContextLength: out.Loads.ContextLength, Memory: out.Bytes()}
		}
	}
	for _, id := range out.Evicts {
		if endpoint.MayUseInstance(c, id) {
			e.Evicts = append(e.Evicts, id)
		} else {
			e.Others++
		}
	}
	for _, id := range out.Shrinks {
		if endpoint.MayUseInstance(c, id) {
			e.Shrinks = append(e.Shrinks, id)
		}
	}
	return e
}

// plannedConfig is the configuration that a load would be made with, as far as it is known before.
func plannedConfig(f *node.Forecast, o node.LoadOptions) resource.LoadConfig {
	c := resource.LoadConfig{ContextLength: f.Spec.ContextLength}
	if f.Choices.Parallel && o.Parallel > 0 {
		c.Parallel = new(f.Spec.Parallel)
	}
	if f.Choices.BatchSize {
		c.BatchSize = new(f.Batch)
	}
	if f.Choices.FlashAttention && f.Spec.FlashAttention != schedule.Auto { // else the engine chooses when it loads
		c.FlashAttention = new(f.Spec.FlashAttention == schedule.On)
	}
	if f.Choices.Experts {
		c.Experts = new(supervisor.Info{Instance: schedule.Instance{Spec: f.Spec}}.Experts())
	}
	if f.Choices.OffloadKV {
		c.OffloadKV = new(f.Spec.OffloadKV != schedule.Off)
	}
	return c
}

func memoryEstimate(f *node.Forecast) resource.MemoryEstimate {
	p := &f.Parts
	e := resource.MemoryEstimate{
		Total: f.Outlook.Needs, Weights: p.Weights, KVCache: p.KVCache, Compute: p.Compute, Projector: p.Projector, Draft: f.Draft,
		PromptCache: f.Spec.Reserve, Confidence: "high",
	}
	e.Engine = max(0, e.Total-e.Weights-e.KVCache-e.Compute-e.Projector-e.Draft-e.PromptCache)
	switch {
	case f.Outlook.Measured:
		e.Confidence = "measured"
	case f.Rough:
		e.Confidence = "low"
	}
	return e
}
