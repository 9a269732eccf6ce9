package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/server"
)

func TestAdvice(t *testing.T) {
	t.Parallel()
	const listed = `{"models":[{"key":"qwen/qwen3-4b","aliases":["gpt-4o","claude-*"],"loaded_instances":[{"id":"qwen/qwen3-4b:2"}]},{"key":"lmcaddy/tinychat"}]}`
	refusal := func(kind, code, message string) string {
		return `!{"error":{"type":"` + kind + `","code":"` + code + `","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"}}`
	}
	for name, tt := range map[string]struct {
		define  func(*cobra.Command)
		line    string
		answers map[string]string
		want    string
	}{
		"a model": {
			models.DefineLoad, "qwen/qwen3-5b",
			map[string]string{"POST /api/v1/models/load": refusal("model_not_found", "", `The model "qwen/qwen3-5b" is not known. There are: x.`), "GET /api/v1/models": listed},
			`there is no model "qwen/qwen3-5b": did you mean qwen/qwen3-4b? "lmcaddy ls" lists the models, "lmcaddy get" downloads one`,
		},
		"a model without its publisher": {
			models.DefineLoad, "tinychta",
			map[string]string{"POST /api/v1/models/load": refusal("model_not_found", "", `The model "tinychta" is not known. There are: x.`), "GET /api/v1/models": listed},
			`there is no model "tinychta": did you mean lmcaddy/tinychat?`,
		},
		"nothing like it": {
			models.DefineLoad, "nobody/nothing",
			map[string]string{"POST /api/v1/models/load": refusal("model_not_found", "", `The model "nobody/nothing" is not known. There are: x.`), "GET /api/v1/models": listed},
			`The model "nobody/nothing" is not known. There are: x. "lmcaddy ls" lists the models, "lmcaddy get" downloads one`,
		},
		"an ambiguous model": {
			models.DefineLoad, "qwen",
			map[string]string{"POST /api/v1/models/load": refusal("model_not_found", "", `The model "qwen" is ambiguous: it may be a, b.`)},
			`The model "qwen" is ambiguous: it may be a, b.`,
		},
		"an instance": {
			models.DefineUnload, "qwen/qwen3-4b:3",
			map[string]string{"POST /api/v1/models/unload": refusal("model_not_found", "", `No instance "qwen/qwen3-4b:3" is loaded. GET /api/v1/models lists the loaded instances.`), "GET /api/v1/models": listed},
			`there is no loaded model "qwen/qwen3-4b:3": did you mean qwen/qwen3-4b:2? "lmcaddy ps" lists what is loaded`,
		},
		"a token": {
			server.DefineToken, "revoke k3V9dPq3",
			map[string]string{"DELETE /api/v1/tokens/k3V9dPq3": refusal("not_found", "token_not_found", `There is no token with the id "k3V9dPq3".`), "GET /api/v1/tokens": `{"tokens":[{"id":"k3V9dPq2","name":"x"}]}`},
			`there is no token with the id "k3V9dPq3": did you mean k3V9dPq2? "lmcaddy token ls" lists the tokens`,
		},
		"a download": {
			models.DefineGet, "--cancel job_12346",
			map[string]string{"POST /api/v1/models/download/job_12346/cancel": refusal("job_not_found", "", `There is no download job "job_12346". GET /api/v1/models/download lists them.`), "GET /api/v1/models/download": `{"jobs":[{"job_id":"job_12345"}]}`},
			`there is no download "job_12346": did you mean job_12345? "lmcaddy get" lists them`,
		},
		"a field": {
			models.DefineLoad, "m --num-experts 0",
			map[string]string{"POST /api/v1/models/load": refusal("invalid_request", "", `"num_experts" must be from 1 to 9, and "other_field" isn't ours.`)},
			`--num-experts must be from 1 to 9, and "other_field" isn't ours.`,
		},
		"an endpoint": {
			models.DefineRM, "m --yes",
			map[string]string{"DELETE /api/v1/models/m": refusal("conflict", "", `m is being downloaded by job_1. Cancel that first: POST /api/v1/models/download/job_1/cancel.`)},
			`m is being downloaded by job_1. Cancel that first: "lmcaddy get --cancel job_1".`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := kittest.TalkTo(t, tt.define, tt.answers, strings.Fields(tt.line)...)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
