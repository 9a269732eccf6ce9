package ollama

import (
	"cmp"
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
	body, name, err := nameField(c)
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
		name, bad := body.String(field)
		switch {
		case bad != nil:
			return bad
		case name == "":
			return translate.Missing(field)
		}
		names[i] = name
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
		return translate.Invalid("invalid_value", "model", "name "+endpoint.Quoted(name)+" is invalid: it may have letters, digits and _ . - in at most three parts, which / separates, and a tag after :")
	}
	if before, ok := c.Node.Names.Custom(from); ok {
		maps.Copy(m.Defaults, before.Defaults)
	}
	maps.Copy(m.Defaults, defaults)
	return c.Node.Names.SaveCustom(c.Request.Context(), m, func(p0 node.CustomModel) error { return mayReplace(c, p0) })
}

// mayReplace returns an error if the request's identity may not use the model behind a name.
func mayReplace(c *endpoint.Call, before node.CustomModel) error {
	if c.Identity.MayUse(before.Model) {
		return nil
	}
	return node.IDTaken(before.Name)
}

// deleteModel is DELETE /api/delete: it deletes a name that a client has given, or else the model's files. A model that is loaded
// is unloaded before.
func deleteModel(c *endpoint.Call) error {
	_, name, err := nameField(c)
	if err != nil {
		return err
	}
	if custom, ok := c.Node.Names.Custom(name); ok && c.Identity.MayUse(custom.Model) {
		if err := c.Node.Names.DeleteCustom(custom.Name, func(p0 node.CustomModel) error { return mayReplace(c, p0) }); err != nil {
			return err
		}
		c.WriteJSON(http.StatusOK, nil)
		return nil
	}
	target, err := c.Find(name)
	var broken *node.BrokenModelError
	if err != nil && !errors.As(err, &broken) {
		return err
	}
	key := target.Model.Key
	if broken != nil {
		key = broken.Key
	} else if err := text.UnloadModel(c, node.Target{Model: target.Model}); err != nil {
		return err
	}
	_, err = c.Node.Downloads.Remove(c.Request.Context(), cmp.Or(key, name), func(key string) error {
		if !c.Identity.MayUse(key) {
			return c.UnknownModel(name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, nil)
	return nil
}

// push is POST /api/push.
func push(*endpoint.Call) error {
	return &translate.Error{Kind: translate.KindNotImplemented, Message: "models can't be pushed from here: use the tools of the hub that they are for"}
}

// getBlob is HEAD and GET /api/blobs/{digest}: there are none, so a client that asks offers to send its own.
func getBlob(c *endpoint.Call) error {
	return &translate.Error{Kind: translate.KindModelNotFound, Message: "blob " + endpoint.Quoted(c.Param) + " not found"}
}

// createBlob is POST /api/blobs/{digest}.
func createBlob(*endpoint.Call) error {
	return &translate.Error{
		Kind: translate.KindNotImplemented, Message: "files can't be sent here: put a GGUF file into the models folder, as models/<publisher>/<name>/<file>.gguf",
	}
}
