package api

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate"
)

// variants is GET /api/v1/models/variants?model=publisher/repository: what there is to download of a model, and what of it fits this machine.
func variants(c *endpoint.Call) error {
	name := c.Request.URL.Query().Get("model")
	if strings.TrimSpace(name) == "" {
		return translate.Missing("model")
	}
	jobs, err := c.Node.Downloads()
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
