package text

import (
	"errors"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// findModel is the model that a request names. If the settings say so, an unknown name, or none, means the only model that it can
// mean.
func findModel(c *endpoint.Call, body *jsonbody.Body) (node.Target, error) {
	name, err := endpoint.ModelName(body)
	if err == nil {
		var target node.Target
		if target, err = c.Find(name); err == nil {
			return target, nil
		}
	}
	if !c.Node.Settings().AnyName || !isAnyName(err) {
		return node.Target{}, err
	}
	key, failed := onlyModel(c)
	switch {
	case failed != nil:
		return node.Target{}, failed
	case key == "":
		return node.Target{}, err
	}
	return c.Find(key)
}

// isAnyName reports whether an error says that a request names no known model.
func isAnyName(err error) bool {
	bad, ok := errors.AsType[*translate.Error](err)
	_, unknown := errors.AsType[*catalog.NotFoundError](err)
	return unknown || ok && bad.Code == translate.Missing("model").Code
}

// onlyModel is the key of the only model that is loaded, or is being loaded, among those that suit the request's path and that its
// identity may use. If none is loaded, it is the only such model in the catalog. It is empty if there are several.
func onlyModel(c *endpoint.Call) (string, error) {
	path := c.Request.URL.Path
	ranks := strings.HasSuffix(path, "/rerank") || strings.HasSuffix(path, "/reranking")
	embeds := strings.HasSuffix(path, "/embeddings") || strings.HasSuffix(path, "/embed")
	suits := func(m *catalog.Model) bool {
		return (m.Type == catalog.TypeEmbedding) == (ranks || embeds) && m.Reranker == ranks
	}
	var keys []string
	for _, in := range c.Node.Instances() {
		if m := in.Spec.Model; suits(&m) && c.Identity.MayUse(m.FullKey()) && !in.Status.IsLeaving() && (in.Spec.Remote == nil || in.IsLoaded()) {
			keys = append(keys, m.Key)
		}
	}
	if len(keys) == 0 {
		models, err := c.Models()
		if err != nil {
			return "", err
		}
		for i := range models {
			if suits(models[i].Model) {
				keys = append(keys, models[i].Key)
			}
		}
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 1 {
		return "", nil
	}
	return keys[0], nil
}
