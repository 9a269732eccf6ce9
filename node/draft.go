package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
)

// draft returns the draft model named for a model, after checking that their vocabularies match. It is nil if the name is
// empty. The error is a [*translate.Error] or one of Find's.
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

// checkExperts returns an error if a model has fewer experts than requested.
func checkExperts(m catalog.Model, experts int) error {
	if experts == 0 || m.Experts == 0 || (experts >= 1 && experts <= m.Experts) {
		return nil
	}
	return translate.Invalid("invalid_value", "num_experts", fmt.Sprintf(`"num_experts" must be between 1 and %d, the number of experts of %s.`, m.Experts, m.Key))
}
