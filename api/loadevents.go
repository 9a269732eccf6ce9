package api

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// wantsEvents reports whether the Accept header names text/event-stream and no other type.
func (c *call) wantsEvents() bool {
	kinds := strings.Join(c.r.Header.Values("Accept"), ",")
	return strings.Contains(kinds, "text/event-stream") && !strings.Contains(kinds, ",")
}

// tellLoad answers a load by its progress. A load that fails before anything was sent is answered by a status.
func (c *call) tellLoad(load func(*supervisor.Notifier) (*resource.Loaded, error)) error {
	s := c.newStream()
	defer s.close()
	var events native.LoadStream
	notifier, loaded, told := supervisor.NewNotifier(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		for {
			select {
			case p := <-notifier.C():
				if p.Instance != "" {
					s.send(events.Append(nil, translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded}))
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
	s.close() // from here on nobody else writes
	switch {
	case err == nil:
		s.send(events.End(nil, result.Instance, result.Seconds, result))
		return nil
	case c.r.Context().Err() != nil || !c.begun:
		return err
	}
	e := c.asError(err)
	c.site.Log.Warn("a stream failed", "request", c.id, "error", e)
	c.ledger.failed(e)
	s.send(events.Fail(nil, e))
	return nil
}
