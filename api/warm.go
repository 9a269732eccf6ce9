package api

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/warm"
)

// DescribeWarm returns what the native API says of saved states, and of what those of models cost, by key.
func DescribeWarm(states []warm.Listed, rates map[string]warm.Rates) resource.Warm {
	list := resource.Warm{States: []resource.WarmState{}}
	for _, s := range states {
		list.States = append(list.States, resource.WarmState{
			Model: s.Model, Owner: s.Owner, Tokens: s.Tokens, SizeBytes: s.Bytes, Created: resource.At(s.Created), LastUsed: resource.At(s.Used),
		})
	}
	for _, model := range slices.Sorted(maps.Keys(rates)) {
		r := rates[model]
		from, known := r.PaysFrom()
		if !known {
			continue
		}
		of := resource.WarmRates{Model: model, PromptRate: 1 / r.Prompt.Seconds(), BytesPerToken: r.Bytes, RestoreRate: r.Reading()}
		if from > 0 {
			of.PaysFrom = &from
		}
		list.Rates = append(list.Rates, of)
	}
	return list
}

// listWarm is GET /api/v1/warm: everybody's states for an administrator, otherwise the identity's own.
func (c *call) listWarm() error {
	rates := c.node.Warm().Rates()
	maps.DeleteFunc(rates, func(model string, _ warm.Rates) bool { return !c.who.MayUseSome(model) })
	return c.answer(DescribeWarm(c.warmStates(), rates))
}

func (c *call) warmStates() []warm.Listed {
	var seen []warm.Listed
	for _, s := range c.node.Warm().List() {
		if c.seesWarm(s.Owner, s.Model) {
			seen = append(seen, s)
		}
	}
	return seen
}

// isAdmin reports whether the request's identity sees what belongs to others.
func (c *call) isAdmin() bool { return c.who != nil && c.who.May(node.ScopeAdmin) }

func (c *call) seesWarm(owner, model string) bool {
	return (c.isAdmin() || owner == c.owner()) && c.who.MayUseSome(model)
}

// clearWarm is DELETE /api/v1/warm?model=key, which deletes what listWarm lists, of one model or of all.
func (c *call) clearWarm() error {
	query := c.r.URL.Query()
	model := query.Get("model")
	if model == "" && query.Has("model") {
		return translate.Invalid("invalid_value", "model", `"model" is empty. Name a model, or leave the parameter out to delete the states of all models.`)
	}
	if model != "" {
		key, err := c.warmModel(model)
		if err != nil {
			return err
		}
		model = key
	}
	n, bytes := c.node.ClearWarm(func(key, owner string) bool { return (model == "" || key == model) && c.seesWarm(owner, key) })
	return c.answer(resource.WarmCleared{Deleted: n, SizeBytes: bytes})
}

// warmModel returns the key of a model, which may be gone while there are still states of it.
func (c *call) warmModel(name string) (key string, _ error) {
	target, err := c.find(name)
	if _, missing := errors.AsType[*catalog.NotFoundError](err); missing {
		for _, s := range c.warmStates() {
			if strings.EqualFold(s.Model, name) {
				return s.Model, nil
			}
		}
	}
	return target.Model.Key, err
}
