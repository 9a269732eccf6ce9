package catalog

import "cmp"

// SetChanged sets what is called after a scan that finds other models than the one before, with those that were added or deleted, or whose
// files have changed. It must be called before the first scan. The function must return at once, and must not call back.
func (c *Catalog) SetChanged(changed func([]Model)) { c.changed = changed }

// tellChanged tells the difference between two listings. The first may be nil: nothing has changed then.
func (c *Catalog) tellChanged(before, after *listing) {
	if c.changed == nil || before == nil {
		return
	}
	if models := differing(before.models, after.models); len(models) > 0 {
		c.changed(models)
	}
}

// differing returns the models that are in only one of two lists, which are sorted by key, or that differ.
func differing(before, after []Model) (changed []Model) {
	if len(before) == len(after) && (len(after) == 0 || &before[0] == &after[0]) {
		return nil // nothing was read anew
	}
	for len(before) > 0 && len(after) > 0 {
		a, b := &before[0], &after[0]
		order := cmp.Compare(a.Key, b.Key)
		switch {
		case order < 0:
			changed = append(changed, *a)
		case order > 0:
			changed = append(changed, *b)
		case differs(a, b):
			changed = append(changed, *b)
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
	return append(append(changed, before...), after...)
}

// differs reports whether two models of one key aren't of the same files.
func differs(m, o *Model) bool {
	return m.Path != o.Path || m.Projector != o.Projector || m.SizeBytes != o.SizeBytes || !m.Changed.Equal(o.Changed) || (m.Err == nil) != (o.Err == nil)
}
