package manage

import (
	"errors"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

type unloaded struct {
	Instance string `json:"instance_id"`
}

// configOf has what can be chosen of a load of the instance's model.
func configOf(in supervisor.Info, can supervisor.Choices) resource.LoadConfig {
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
		c.OffloadKV = new(in.Spec.OffloadKV != supervisor.Off && !in.IsOnProcessor())
	}
	return c
}

// load is POST /api/v1/models/load. Each request loads another instance.
func load(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c)
	if err != nil {
		return err
	}
	options, bad := loadOptions(body)
	if bad != nil {
		return bad
	}
	echo, bad := body.Bool("echo_load_config")
	if bad != nil {
		return bad
	}
	estimate, bad := body.Bool("estimate_only")
	if bad != nil {
		return bad
	}
	options.Owner = c.Owner()
	target, err := c.Find(name)
	if err != nil {
		return err
	}
	if estimate {
		return answerEstimate(c, target.Model, options)
	}
	load := func(progress *supervisor.Notifier) (*resource.Loaded, error) {
		loaded, err := c.Node.LoadAt(c.Request.Context(), target, options, progress)
		if err != nil {
			return nil, err
		}
		answer := &resource.Loaded{Type: string(target.Model.Type), Instance: loaded.ID, Seconds: loaded.LoadTime.Seconds(), Status: "loaded"}
		if loaded.IsSplit() {
			answer.Placement = loaded.Placed()
		}
		if echo {
			answer.Config = new(configOf(loaded, c.Node.Choices(loaded)))
		}
		return answer, nil
	}
	if wantsEvents(c) {
		return tellLoad(c, load)
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
	id, bad := body.String("instance_id")
	if bad != nil {
		return bad
	}
	if id == "" {
		return translate.Missing("instance_id")
	}
	name := id
	if c.IsRestricted() {
		_, err := c.Find(name)
		if _, missing := errors.AsType[*catalog.NotFoundError](err); missing {
			return supervisor.UnknownInstance(name)
		}
	}
	if id = c.Node.InstanceID(c.Request.Context(), name); !endpoint.MayUseInstance(c, id) {
		return supervisor.UnknownInstance(name)
	}
	if err := c.Node.Unload(c.Request.Context(), id); err != nil {
		return err
	}
	return c.Answer(unloaded{id})
}

// wantsEvents reports whether the Accept header names text/event-stream and no other type.
func wantsEvents(c *endpoint.Call) bool {
	kinds := strings.Join(c.Request.Header.Values("Accept"), ",")
	return strings.Contains(kinds, "text/event-stream") && !strings.Contains(kinds, ",")
}

// tellLoad answers a load by its progress. A load that fails before anything was sent is answered by a status.
func tellLoad(c *endpoint.Call, load func(*supervisor.Notifier) (*resource.Loaded, error)) error {
	s := c.NewStream()
	defer s.Close()
	var events native.LoadStream
	notifier, loaded, told := supervisor.NewNotifier(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for {
			select {
			case p := <-notifier.C():
				if p.Instance != "" {
					s.Send(events.Append(nil, translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded}))
				}
			case <-loaded:
				return
			}
		}
	}()
	result, err := func() (*resource.Loaded, error) {
		defer func() {
			close(loaded)
			<-told
		}()
		return load(notifier)
	}()
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

// removed says which model was removed.
type removed struct {
	Key string `json:"key"`
}

// remove is DELETE /api/v1/models/{key}: it deletes the model's files.
func remove(c *endpoint.Call) error {
	if _, err := c.Find(c.Param); err != nil && c.IsRestricted() {
		return err // which doesn't reveal whether there is such a model
	}
	key, err := c.Node.Remove(c.Request.Context(), c.Param, func(key string) error {
		if !c.Identity.MayUse(key) {
			return c.UnknownModel(c.Param)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.Answer(removed{key})
}
