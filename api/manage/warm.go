package manage

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/warm"
)

// DescribeWarm returns what the native API says of saved states, and of what those of models cost, by key.
func DescribeWarm(states []warm.Listed, rates map[string]warm.Rates) resource.Warm {
	list := resource.Warm{States: []resource.WarmState{}}
	for _, s := range states {
		list.States = append(list.States, resource.WarmState{
			Model: s.Model, Owner: s.Owner, Tokens: s.Tokens, SizeBytes: s.Bytes,
			Created: resource.At(s.Created), LastUsed: resource.At(s.Used),
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
func listWarm(c *endpoint.Call) error {
	rates := c.Node.Warm.Rates()
	maps.DeleteFunc(rates, func(model string, _ warm.Rates) bool { return !c.Identity.MayUseSome(model) })
	return c.Answer(DescribeWarm(warmStates(c), rates))
}

func warmStates(c *endpoint.Call) []warm.Listed {
	return slices.DeleteFunc(c.Node.Warm.List(), func(s warm.Listed) bool { return !seesWarm(c, s.Owner, s.Model) })
}

func seesWarm(c *endpoint.Call, owner, model string) bool {
	return (c.IsAdmin() || owner == c.Owner()) && c.Identity.MayUseSome(model)
}

// clearWarm is DELETE /api/v1/warm?model=key, which deletes what listWarm lists, of one model or of all.
func clearWarm(c *endpoint.Call) error {
	query := c.Request.URL.Query()
	model := query.Get("model")
	if model == "" && query.Has("model") {
		return translate.BadValue("model", "is empty. Name a model, or leave the parameter out to delete the states of all models.")
	}
	if model != "" {
		target, err := c.Find(model)
		key := target.Model.Key
		if _, missing := errors.AsType[*catalog.NotFoundError](err); missing { // there may still be states of it
			states := warmStates(c)
			if i := slices.IndexFunc(states, func(s warm.Listed) bool { return strings.EqualFold(s.Model, model) }); i >= 0 {
				key, err = states[i].Model, nil
			}
		}
		if err != nil {
			return err
		}
		model = key
	}
	n, bytes := c.Node.Stores.ClearWarm(func(key, owner string) bool { return (model == "" || key == model) && seesWarm(c, owner, key) })
	return c.Answer(resource.WarmCleared{Deleted: n, SizeBytes: bytes})
}
