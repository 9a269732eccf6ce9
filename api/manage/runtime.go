package manage

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

type runtimeEvent struct {
	Doing   string  `json:"doing"`
	Percent float64 `json:"percent"`
}

// getRuntime is POST /api/v1/runtime: it installs an engine, unless one of its kind can be used already. A client that wants events is told of
// the progress. Nothing is installed if it disconnects.
func getRuntime(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	fields := body.Fields()
	engine := fields.Text("engine")
	switch {
	case fields.Err != nil:
		return fields.Err
	case engine != "llama.cpp" && engine != "mlx-lm":
		return translate.Invalid("invalid_value", "engine", `"engine" must be "llama.cpp" or "mlx-lm".`)
	}
	if !strings.Contains(c.Request.Header.Get("Accept"), "text/event-stream") {
		got, err := c.Node.Engines.Get(c.Request.Context(), engine, nil)
		if err != nil {
			return notInstalled(c, err)
		}
		return c.Answer(got)
	}
	s := c.NewStream()
	defer s.Close()
	send := func(name string, value any) {
		event := append(jsonbody.AppendEvent(nil, name), ',')
		s.Send(jsonbody.EndEvent(append(event, strings.Trim(string(jsonbody.AppendJSON(nil, value)), "{}")...)))
	}
	got, err := c.Node.Engines.Get(c.Request.Context(), engine, func(doing string, percent float64) { send("runtime.progress", runtimeEvent{doing, percent}) })
	switch {
	case err == nil:
		send("runtime.end", got)
		return nil
	case c.Request.Context().Err() != nil || !c.Begun:
		return notInstalled(c, err)
	}
	s.Send(new(native.LoadStream).Fail(nil, c.Error(notInstalled(c, err))))
	return nil
}

func notInstalled(c *endpoint.Call, err error) error {
	if c.Request.Context().Err() != nil {
		return err
	}
	c.Site.Log.Warn("an engine could not be installed", "request", c.ID, "error", err)
	return &translate.Error{Kind: translate.KindHubFailed, Code: "engine_not_installed", Message: "The engine could not be installed: " + c.Node.HidePaths(err.Error())}
}
