package api

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

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
