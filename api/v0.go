package api

import (
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// extra is what an answer has beside the OpenAI-style fields: in v0 the figures, the model and the engine; elsewhere the
// figures alone, and only where a draft model took part. It is nil where there is nothing to add.
func (c *call) extra(in supervisor.Info, draft string) openai.Extra {
	isV0 := c.dialect == nativeDialect
	if in.Spec.Draft != nil {
		draft = in.Spec.Draft.Key // the request may have called it by another name, or by none
	}
	if !isV0 && draft == "" {
		return nil
	}
	m, context := in.Spec.Model, in.Spec.ContextLength
	return func(o *translate.Outcome) []byte {
		extras := openai.Extras{Stats: openai.NewStats(o, context, draft)}
		if isV0 {
			extras.ModelInfo = &openai.ModelInfo{Arch: m.Architecture, Quant: m.Quantization.Name, Format: string(m.Format), ContextLength: context}
			extras.Runtime = &openai.Runtime{Name: in.Build.Engine, Version: in.Build.Version, SupportedFormats: []string{string(m.Format)}}
		}
		return extras.Members()
	}
}

// atFault is what the event of a failure has beside the error: in v0, why the answer of an instance ended, and after how long
// it had begun. It is nil where there is nothing to add.
func (c *call) atFault(in supervisor.Info, draft string, first time.Duration) []byte {
	if in.ID == "" {
		return nil // none was asked
	}
	extra := c.extra(in, draft)
	if extra == nil {
		return nil
	}
	stop := translate.StopFailed
	for _, other := range c.node.Instances() {
		if other.ID == in.ID && other.Status.IsLeaving() {
			stop = translate.StopUnloaded
		}
	}
	return extra(&translate.Outcome{Stop: translate.Stop{Reason: stop}, FirstToken: first})
}
