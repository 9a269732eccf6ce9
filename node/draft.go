package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
)

// draft finds the model that is to draft for another, and sees that it can. It is nil where none is wanted. The error is a
// [*translate.Error] or one of Find's.
func (n *Node) draft(ctx context.Context, m catalog.Model, name string) (*catalog.Model, error) {
	if name == "" {
		return nil, nil
	}
	target, err := n.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if target.Model.Key == m.Key {
		return nil, translate.Invalid("invalid_value", "draft_model", fmt.Sprintf("%s can't draft for itself: name a smaller model of the same family.", m.Key))
	}
	if err := catalog.SameVocabulary(m, target.Model); err != nil {
		if differ, ok := errors.AsType[*catalog.VocabularyError](err); ok {
			return nil, translate.Invalid("invalid_value", "draft_model", differ.Error())
		}
		return nil, &BrokenModelError{target.Model.Key, target.Model.Path, err}
	}
	return &target.Model, nil
}

// checkExperts sees that a model has as many experts as are asked for.
func checkExperts(m catalog.Model, experts int) error {
	if experts == 0 || m.Experts == 0 || (experts >= 1 && experts <= m.Experts) {
		return nil
	}
	return translate.Invalid("invalid_value", "num_experts", fmt.Sprintf(`"num_experts" must be between 1 and %d, which is how many %s has.`, m.Experts, m.Key))
}
