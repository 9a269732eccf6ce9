package manage

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// pin is POST /api/v1/models/pin: whether an instance, or all of a model, may be unloaded for other models.
func pin(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	pinned, bad := body.Bool("pinned")
	if bad != nil {
		return bad
	}
	if !jsonbody.IsGiven(body.Value("pinned")) {
		return translate.Missing("pinned")
	}
	instances, err := instancesToPin(c, body)
	if err != nil {
		return err
	}
	answer := resource.Pinned{Model: instances[0].Spec.Model.Key, Pinned: pinned}
	for _, in := range instances {
		if err := c.Node.Loads.Pin(c.Request.Context(), in, pinned); err != nil {
			return err
		}
		answer.Instances = append(answer.Instances, in.ID)
	}
	return c.Answer(answer)
}

// instancesToPin are the instances that a body names, by "model" or by "instance_id": at least one, of one model.
func instancesToPin(c *endpoint.Call, body *jsonbody.Body) ([]supervisor.Info, error) {
	name, bad := body.String("model")
	if bad != nil {
		return nil, bad
	}
	id, bad := body.String("instance_id")
	switch {
	case bad != nil:
		return nil, bad
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
