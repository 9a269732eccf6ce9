package openai

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// extra makes an answer's fields that aren't OpenAI-style: in v0 the statistics, the model and the engine; elsewhere only the
// statistics, and only with a draft model. It is nil if there are none.
func extra(c *endpoint.Call, in *supervisor.Info, draft string) openai.Extra {
	isV0 := c.Dialect.Family == endpoint.FamilyV0
	if in.Spec.Draft != nil {
		draft = in.Spec.Draft.Key // the request may name it by an alias, or not at all
	}
	if !isV0 && draft == "" {
		return nil
	}
	spec, build := in.Spec, in.Build // in is the caller's
	m, context := &spec.Model, spec.ContextLength
	return func(o *translate.Outcome) []byte {
		extras := openai.Extras{Stats: openai.NewStats(o, context, draft)}
		if isV0 {
			extras.ModelInfo = &openai.ModelInfo{Arch: m.Architecture, Quant: m.Quantization.Name, Format: string(m.Format), ContextLength: context}
			extras.Runtime = &openai.Runtime{Name: build.Engine, Version: build.Version, SupportedFormats: []string{string(m.Format)}}
		}
		return extras.Members()
	}
}

// withFigures returns the error of a run that failed, and adds to its event, in v0, why the answer ended and when it began.
func withFigures(r *text.Run, err error) error {
	if r.Stream == nil || r.Instance == nil { // no engine has begun to answer
		return err
	}
	extra := extra(r.Call, r.Instance, r.Request.Demand.Draft)
	if extra == nil {
		return err
	}
	stop := translate.StopFailed
	if now := endpoint.Instance(r.Call, r.Instance.ID); now.ID != "" && now.Status.IsLeaving() {
		stop = translate.StopUnloaded
	}
	r.Stream.AtFault = extra(&translate.Outcome{Stop: translate.Stop{Reason: stop}, FirstToken: r.First})
	return err
}

// V0 is LM Studio's older API: OpenAI-style, with figures of the engine, and with the native API's errors.
var V0 = &endpoint.Dialect{
	Name: "v0", Family: endpoint.FamilyV0, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		return r.URL.Path == "/api/v0" || strings.HasPrefix(r.URL.Path, "/api/v0/")
	},
	Routes: []endpoint.Route{
		endpoint.Get("/api/v0/models", access.ScopeModelsList, listV0Models),
		endpoint.Get("/api/v0/models/", access.ScopeModelsList, getV0Model),
		endpoint.Post("/api/v0/chat/completions", access.ScopeInference, chatCompletions),
		endpoint.Post("/api/v0/completions", access.ScopeInference, completions),
		endpoint.Post("/api/v0/embeddings", access.ScopeInference, embeddings),
	},
}
