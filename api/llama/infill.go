package llama

import (
	"context"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/openai"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/llama"
	openaiwire "github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Dialect has the paths of llama-server that no other API has.
var Dialect = &endpoint.Dialect{
	Name: "llama", Family: endpoint.FamilyLlama, Errors: openaiwire.Errors{}, Stream: endpoint.ServerSent, OnlyModel: true,
	Owns: func(r *http.Request) bool { return OwnsPath(r.URL.Path) },
	Routes: []endpoint.Route{
		endpoint.Post("/infill", access.ScopeInference, infill),
		endpoint.Post("/tokenize", access.ScopeInference, tokenize),
		endpoint.Post("/detokenize", access.ScopeInference, detokenize),
		endpoint.Post("/apply-template", access.ScopeInference, applyTemplate),
		endpoint.Get("/props", access.ScopeModelsList, props, "model"),
		endpoint.Get("/slots", access.ScopeModelsList, slots, "model"),
		endpoint.Post("/rerank", access.ScopeInference, openai.Rerank),
		endpoint.Post("/v2/rerank", access.ScopeInference, openai.Rerank),
	},
}

// OwnsPath reports whether a path is one of llama-server's own.
func OwnsPath(path string) bool {
	switch path {
	case "/infill", "/tokenize", "/detokenize", "/apply-template", "/props", "/slots", "/rerank", "/v2/rerank":
		return true
	default:
		return false
	}
}

type run struct {
	*text.Run

	asked  *llama.Infill
	answer llama.Answer
}

// infill is POST /infill.
func infill(c *endpoint.Call) error {
	rq, err := text.Read(c, openaiwire.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := llama.ParseInfill(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	task, err := rq.NewCompletion(&asked.Completion)
	if err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	r := &run{Run: text.NewRun(rq), asked: asked}
	defer r.Close()
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: task}); err != nil {
		return text.Refined(text.Refined(err, asked.Refine), fieldNames.Refine)
	}
	if r.Stream == nil {
		c.WriteJSON(http.StatusOK, r.answer.Body())
	}
	return nil
}

// fieldNames are what /infill calls the fields of a text completion.
var fieldNames = text.FieldNames{"prompt": "input_prefix", "suffix": "input_suffix"}

func (r *run) Begin(_ context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	in := &resp.Lease.Instance
	r.answer = llama.Answer{Model: in.ID, Context: in.Spec.ContextLength, Asked: r.asked, IsStream: r.Stream != nil}
	if r.Stream != nil {
		r.Stream.Await()
	}
	return r.ByEvents(resp, decoder, &r.answer), nil
}
