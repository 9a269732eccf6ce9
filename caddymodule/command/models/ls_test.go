package models

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
)

func TestLS(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"GET /api/v1/models": `{"models":[{"key":"qwen/qwen3-4b@q4_k_m","type":"llm"},{"key":"qwen/qwen3-8b","type":"llm"},{"key":"a/nomic-embed","type":"embedding"}],
			"broken":[{"key":"qwen/cut","error":"It is cut.","path":"qwen/cut/x.gguf"}]}`,
		"GET /api/v1/models/companions": `{"companions":[{"key":"a/hf@hf","role":"safetensors","path":"a/hf","models":[]},{"key":"a/sees@mmproj","role":"projector","path":"a/sees/mmproj.gguf","models":[]},
			{"key":"a/x@mmproj","role":"projector","path":"a/x/mmproj.gguf","models":["a/x"]}]}`,
	}
	const alone = "a/hf has safetensors, which no engine here runs: get the model as GGUF. a/sees/mmproj.gguf is a projector without a model: put the model's file beside it."
	for line, want := range map[string]string{
		"":             "qwen/qwen3-4b@q4_k_m qwen/qwen3-8b a/nomic-embed " + alone + " These can't be used: qwen/cut: It is cut (qwen/cut/x.gguf)",
		"qwen3":        "qwen/qwen3-4b@q4_k_m qwen/qwen3-8b",
		"QWEN/qwen3-4": "qwen/qwen3-4b@q4_k_m",
		"*-embed":      "a/nomic-embed",
		"qwen/*8b":     "qwen/qwen3-8b",
		"a":            "a/nomic-embed " + alone,
		"x y":          `No model matches. "lmcaddy ls" lists all. a/x@mmproj`,
		"nothing":      `No model matches. "lmcaddy ls" lists all.`,
	} {
		args := []string{}
		if line == "x y" {
			args = append(args, "--all")
			line = "x"
		}
		if line != "" {
			args = append(args, line)
		}
		out, _, err := kittest.TalkTo(t, DefineLS, answers, args...)
		var got []string
		for row := range strings.Lines(out) {
			first, rest, isTable := strings.Cut(strings.TrimSpace(row), "  ")
			if isTable && strings.TrimSpace(rest) != "" && first != "MODEL" && first != "FILE OF A MODEL" {
				got = append(got, first)
			} else if !isTable && first != "" {
				got = append(got, first)
			}
		}
		kittest.WantTalk(t, want, "", strings.Join(got, " "), err)
	}
	out, _, err := kittest.TalkTo(t, DefineLS, answers, "qwen3-8", "--json")
	if err != nil || !strings.Contains(out, "qwen/qwen3-8b") || strings.Contains(out, "4b") || strings.Contains(out, "companions") {
		t.Errorf("%s, %v", out, err)
	}
	out, _, err = kittest.TalkTo(t, DefineLS, answers, "a/x", "--json", "--all")
	if err != nil || strings.Contains(out, "qwen") || !strings.Contains(out, "a/x@mmproj") {
		t.Errorf("%s, %v", out, err)
	}
	answers["GET /api/v1/models/companions"] = `!{"error":{"code":"missing_scope","message":"It lacks the scope models.read."}}`
	if out, _, err = kittest.TalkTo(t, DefineLS, answers); err != nil || !strings.Contains(out, "qwen/qwen3-8b") {
		t.Errorf("as a guest: %s, %v", out, err)
	}
	_, _, err = kittest.TalkTo(t, DefineLS, answers, "--all")
	kittest.WantTalk(t, "", "lacks the scope models.read", "", err)
}
