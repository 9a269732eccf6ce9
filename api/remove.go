package api

// nativeRemoved says which model was removed.
type nativeRemoved struct {
	Key string `json:"key"`
}

// remove is DELETE /api/v1/models/{key}: the model's files are deleted from the home's folder.
func (c *call) remove() error {
	if _, err := c.find(c.param); err != nil && c.isRestricted() {
		return err // nor may it be seen by the answer whether there is such a model
	}
	key, err := c.node.Remove(c.r.Context(), c.param, func(key string) error {
		if !c.who.MayUse(key) {
			return notAllowed(c.param)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.answer(nativeRemoved{key})
}
