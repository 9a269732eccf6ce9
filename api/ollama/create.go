package ollama

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// create is POST /api/create: a name for a model, with defaults. What is made under that name before is replaced.
func create(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	asked, bad := ollama.ParseCreate(body)
	if bad != nil {
		return bad
	}
	stream, bad := body.BoolOr("stream", true)
	if bad != nil {
		return bad
	}
	if err := saveCustom(c, asked.From, name, asked.Defaults); err != nil {
		return err
	}
	if !stream {
		return c.Answer(ollama.Progress{Status: "success"})
	}
	s := c.NewStream()
	defer s.Close()
	for _, status := range []string{"using existing layer", "writing manifest", "success"} {
		s.Send(ollama.Progress{Status: status}.AppendLine(nil))
	}
	return nil
}

// copyModel is POST /api/copy: another name for a model, with the defaults of the first.
func copyModel(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	var names [2]string
	for i, field := range []string{"source", "destination"} {
		var bad *translate.Error
		if names[i], bad = body.String(field); bad != nil {
			return bad
		}
		if names[i] == "" {
			return translate.Missing(field)
		}
	}
	if err := saveCustom(c, names[0], names[1], nil); err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, nil)
	return nil
}

// saveCustom gives a model a name. Defaults are added to those that it has already.
func saveCustom(c *endpoint.Call, from, name string, defaults map[string]json.RawMessage) error {
	target, err := c.Find(from)
	if err != nil {
		return err
	}
	m := node.CustomModel{Name: ollama.Canonical(name), Model: target.Model.FullKey(), Defaults: node.Preset{}}
	if !ollama.IsValid(name) {
		return translate.Invalid("invalid_value", "model", "name "+endpoint.Quoted(name)+" is invalid: it may have letters, digits and _ "+
			". - in at most three parts, which / separates, and a tag after :")
	}
	if before, ok := c.Node.Names.Custom(from); ok {
		maps.Copy(m.Defaults, before.Defaults)
	}
	maps.Copy(m.Defaults, defaults)
	return c.Node.Names.SaveCustom(c.Request.Context(), m, mayReplace(c))
}

// mayReplace returns a function that refuses a name of a model that the request's identity may not use.
func mayReplace(c *endpoint.Call) func(before node.CustomModel) error {
	return func(before node.CustomModel) error {
		if c.Identity.MayUse(before.Model) {
			return nil
		}
		return node.IDTaken(before.Name)
	}
}

// deleteModel is DELETE /api/delete of a name that a client has given, or else of a model's files, after it was unloaded.
func deleteModel(c *endpoint.Call) error {
	_, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	if custom, ok := c.Node.Names.Custom(name); ok && c.Identity.MayUse(custom.Model) {
		if err := c.Node.Names.DeleteCustom(custom.Name, mayReplace(c)); err != nil {
			return err
		}
		c.WriteJSON(http.StatusOK, nil)
		return nil
	}
	target, err := c.Find(name)
	key := target.Model.Key
	if broken, ok := errors.AsType[*node.BrokenModelError](err); ok {
		key = broken.Key
	} else if err == nil {
		err = text.UnloadModel(c, node.Target{Model: target.Model})
	}
	if key == "" || err != nil && key == target.Model.Key {
		return err
	}
	if _, err := endpoint.Remove(c, key, name); err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, nil)
	return nil
}

// refuse is an endpoint that always refuses.
func refuse(message string) func(*endpoint.Call) error {
	return func(*endpoint.Call) error {
		return &translate.Error{Kind: translate.KindNotImplemented, Message: message}
	}
}
