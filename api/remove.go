package api

// nativeRemoved says which model was removed.
type nativeRemoved struct {
	Key string `json:"key"`
}

// remove is DELETE /api/v1/models/{key}: it deletes the model's files.
func (c *call) remove() error {
	if _, err := c.find(c.param); err != nil && c.isRestricted() {
		return err // which doesn't reveal whether there is such a model
	}
	key, err := c.node.Remove(c.r.Context(), c.param, func(key string) error {
		if !c.who.MayUse(key) {
			return c.notAmongTheirs(c.param)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.answer(nativeRemoved{key})
}
