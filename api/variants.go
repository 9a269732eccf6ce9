package api

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/translate"
)

// variants is GET /api/v1/models/variants?model=publisher/repository: what there is to download of a model, and what of it fits this machine.
func (c *call) variants() error {
	name := c.r.URL.Query().Get("model")
	if strings.TrimSpace(name) == "" {
		return translate.Missing("model")
	}
	jobs, err := c.node.Downloads()
	if err != nil {
		return err
	}
	offer, err := jobs.Offered(c.r.Context(), fetch.Request{Model: name, May: c.mayFetch(name)})
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
	return c.answer(answer)
}

// mayFetch returns a function that says whether the identity may download a model, which it names so, in a quantization.
func (c *call) mayFetch(name string) func(folder, quantization string, isChosen bool) error {
	return func(folder, quantization string, isChosen bool) error {
		if !c.who.MayFetch(folder, quantization, isChosen) {
			return notAllowed(name)
		}
		return nil
	}
}
