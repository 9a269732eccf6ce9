package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/translate"
)

// draft returns the draft model named for a model, after checking that their vocabularies match. It is nil if the name is
// empty. The error is a [*translate.Error] or one of Find's.
func (ld *Loads) draft(ctx context.Context, m catalog.Model, name string) (*catalog.Model, error) {
	if name == "" {
		return nil, nil
	}
	target, err := ld.names.FindDraft(ctx, m.Key, name)
	if err != nil {
		return nil, err
	}
	if target.Model.Drafting != "" {
		return &target.Model, nil // it has no vocabulary of its own, or the engine maps it
	}
	if target.Model.Key == m.Key {
		return nil, translate.Invalid("invalid_value", "draft_model",
			fmt.Sprintf("%s can't draft for itself: name a smaller model of the same family.", m.Key))
	}
	if err := catalog.SameVocabulary(m, target.Model); err != nil {
		if differ, ok := errors.AsType[*catalog.VocabularyError](err); ok {
			return nil, translate.Invalid("invalid_value", "draft_model", differ.Error())
		}
		return nil, &BrokenModelError{target.Model.Key, target.Model.Path, err}
	}
	return &target.Model, nil
}

// FindDraft returns the draft model with a name: a drafter beside the model, by its key or the name of its file, a model by any of its
// names, or another drafter. The errors are those of Find.
func (n *Names) FindDraft(ctx context.Context, model, name string) (Target, error) {
	name = n.resolve(name)
	if found, err := n.catalog.Companion(name, filename.Drafter, model); err == nil && slices.Contains(found.Of, model) {
		return Target{Model: found.Model}, nil
	}
	target, err := n.Find(ctx, name)
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok && len(missing.Ambiguous) == 0 {
		switch found, failed := n.catalog.Companion(name, filename.Drafter, model); {
		case failed == nil:
			return Target{Model: found.Model}, nil
		case len(failed.Ambiguous) > 0:
			return Target{}, failed
		}
	}
	return target, err
}

// checkExperts returns an error if a model has fewer experts than requested.
func checkExperts(m catalog.Model, experts int) error {
	if experts == 0 || m.Experts == 0 || (experts >= 1 && experts <= m.Experts) {
		return nil
	}
	return translate.Invalid("invalid_value", "num_experts",
		fmt.Sprintf(`"num_experts" must be between 1 and %d, the number of experts of %s.`, m.Experts, m.Key))
}
