package api

import (
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

// withFigures is the error of a run that failed. The event that tells of it has, in v0, why the answer of an instance ended
// and when it had begun.
func (r *run) withFigures(err error) error {
	if r.stream == nil || r.instance.ID == "" { // no engine has begun to answer
		return err
	}
	extra := r.call.extra(r.instance, r.rq.use.Draft)
	if extra == nil {
		return err
	}
	stop := translate.StopFailed
	if now := r.call.instance(r.instance.ID); now.ID != "" && now.Status.IsLeaving() {
		stop = translate.StopUnloaded
	}
	r.stream.atFault = extra(&translate.Outcome{Stop: translate.Stop{Reason: stop}, FirstToken: r.first})
	return err
}
