package api

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

// nativeRemoved says which model was removed.
type nativeRemoved struct {
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
	return c.Answer(nativeRemoved{key})
}
