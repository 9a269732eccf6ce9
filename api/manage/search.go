package manage

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate"
)

// search is GET /api/v1/models/search?query=qwen3+4b&limit=10, which makes the server send a dozen requests to its hubs.
func search(c *endpoint.Call) error {
	query := parametersOf(c)
	limit := query.limit(1, hub.MaxResults, 0)
	switch {
	case query.Get("query") == "":
		return translate.Missing("query")
	case query.err != nil:
		return query.err
	}
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	found, err := jobs.Search(c.Request.Context(), hub.Query{
		Words: query.Get("query"), Limit: limit, May: func(folder string) bool { return c.Identity.MayFetch(folder, "", false) },
	})
	if err != nil {
		return err
	}
	answer := resource.Found{Models: []resource.FoundModel{}}
	for i := range found {
		answer.Models = append(answer.Models, foundModel(c, &found[i]))
	}
	return c.Answer(answer)
}

func foundModel(c *endpoint.Call, r *hub.Result) resource.FoundModel {
	m := resource.FoundModel{
		Model: r.Name, Repository: r.Repo, URL: r.Hub + "/" + r.Repo, WellKnown: r.IsWellKnown, Updated: resource.At(r.Updated),
		Gated: r.Gated, Format: string(r.Format), Quantization: r.Quantization, Downloaded: c.Node.Names.HasFolder(r.Folder),
	}
	for _, n := range []struct {
		from int64
		to   **int64
	}{{r.Downloads, &m.Downloads}, {r.Likes, &m.Likes}, {r.SizeBytes, &m.SizeBytes}} {
		if n.from >= 0 {
			*n.to = &n.from
		}
	}
	if r.SizeBytes >= 0 {
		m.Fits = &r.Fits
	}
	return m
}

// variants is GET /api/v1/models/variants?model=publisher/repository: what there is to download of a model, and what of it fits here.
func variants(c *endpoint.Call) error {
	name := c.Request.URL.Query().Get("model")
	if strings.TrimSpace(name) == "" {
		return translate.Missing("model")
	}
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	offer, err := jobs.Offered(c.Request.Context(), fetch.Request{Model: name, May: endpoint.MayFetch(c, name)})
	if err != nil {
		return err
	}
	answer := resource.Offer{Model: offer.Model, Repository: offer.Repo, URL: offer.Page, Variants: []resource.Variant{}}
	for _, v := range offer.Variants {
		answer.Variants = append(answer.Variants, resource.Variant{
			Quantization: v.Quantization, Format: string(v.Format), Bits: v.Bits, SizeBytes: v.SizeBytes,
			FitsMemory: v.FitsMemory, FitsDisk: v.FitsDisk, Downloaded: v.Downloaded, Recommended: v.Recommended,
		})
	}
	return c.Answer(answer)
}
