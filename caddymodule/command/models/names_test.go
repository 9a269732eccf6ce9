package models

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
)

// TestFullName: the beginning of a name stands for the one model that begins so.
func TestFullName(t *testing.T) {
	t.Parallel()
	const unknown = `!{"error":{"type":"invalid_request_error","code":"model_not_found","message":"The model is not known."}}`
	answers := map[string]string{
		"GET /api/v1/models": `{"models":[{"key":"qwen/qwen3-4b-instruct@q4_k_m"},{"key":"qwen/qwen3-4b-instruct@q8_0"},{"key":"qwen/qwen3-40b"},{"key":"a/gemma-3-4b"},{"key":"a/gemma-3-1b"}]}`,
	}
	for _, name := range []string{"qwen3-4b", "qwen/qwen3-4b", "qwen3-4b@q8_0", "gemma-3", "qwen3-4"} {
		answers["GET /api/v0/models/"+name] = unknown
	}
	for _, name := range []string{"qwen/qwen3-4b-instruct", "qwen/qwen3-4b-instruct@q8_0", "exact"} {
		answers["GET /api/v1/models/"+name] = `{"key":"` + name + `","chat_template":"of ` + name + `"}`
	}
	answers["GET /api/v0/models/exact"] = `{}`
	for name, want := range map[string]string{
		"qwen3-4b": "qwen/qwen3-4b-instruct", "qwen/qwen3-4b": "qwen/qwen3-4b-instruct", "qwen3-4b@q8_0": "qwen/qwen3-4b-instruct@q8_0",
		"exact": "exact", "gemma-3": "", "qwen3-4": "",
	} {
		out, notes, err := kittest.TalkTo(t, func(cmd *cobra.Command) { DefineShow(cmd) }, answers, name, "--template")
		kittest.WantTalk(t, "of "+want+"\n", map[bool]string{true: "The model is not known."}[want == ""], out, err)
		if said := name + " is " + want + ".\n"; want != "" && want != name && notes != said {
			t.Errorf("%q, want %q", notes, said)
		}
	}
}
