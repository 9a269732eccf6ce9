package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/chat"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/models"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/server"
)

// Names from anywhere clear no screen, turn no text around and add no line.
func TestNames_AreSafeToPrint(t *testing.T) {
	t.Parallel()
	const evil = `a/b\u001b[2J\u202e\u009b1m\nforged\tname`
	for name, tt := range map[string]struct {
		command func(*cobra.Command)
		answers map[string]string
		args    []string
	}{
		"show": {models.DefineShow, map[string]string{"GET /api/v1/models/a/b": `{"key":"EVIL","display_name":"EVIL","aliases":["EVIL"],"engine_problem":"EVIL","load_error":"EVIL",
			"files":[{"path":"EVIL","role":"EVIL"}],"loaded_instances":[{"id":"EVIL"}],"chat_template":null}`}, []string{"a/b"}},
		"show --template": {models.DefineShow, map[string]string{"GET /api/v1/models/a/b": `{"key":"a/b","chat_template":"a/b\u001b[2J\u202e"}`}, []string{"a/b", "--template"}},
		"ls": {models.DefineLS, map[string]string{"GET /api/v1/models": `{"models":[{"key":"EVIL","type":"EVIL","params_string":"EVIL","aliases":["EVIL"],"engine_problem":"EVIL","loaded_instances":[]}],
			"broken":[{"key":"EVIL","error":"EVIL","path":"EVIL"}]}`, "GET /api/v1/models/companions": `{"companions":[{"role":"projector","path":"EVIL"}]}`}, nil},
		"ps":       {server.DefinePS, map[string]string{"GET /api/v1/ps": `{"instances":[{"instance_id":"EVIL","id":"EVIL","model":"EVIL","status":"EVIL"}],"remotes":[{"name":"EVIL","state":"EVIL","error":"EVIL"}]}`}, nil},
		"token":    {server.DefineToken, map[string]string{"GET /api/v1/tokens": `{"tokens":[{"id":"EVIL","name":"EVIL","scopes":["EVIL"],"models":["EVIL"]}]}`}, []string{"ls"}},
		"unload":   {models.DefineUnload, map[string]string{"GET /api/v1/models": `{"models":[{"key":"EVIL","loaded_instances":[{"id":"EVIL"}]}]}`, "POST /api/v1/models/unload": `{}`}, nil},
		"chat":     {chat.Define, map[string]string{"GET /api/v1/models": `{"models":[{"key":"EVIL","type":"llm","loaded_instances":[{"id":"EVIL"}]}]}`}, []string{"--prompt", "x"}},
		"an error": {models.DefineShow, map[string]string{"GET /api/v1/models/a/b": `!{"error":{"type":"x","message":"a/b\u001b[2J\u202e"}}`}, []string{"a/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, answer := range tt.answers {
				tt.answers[path] = strings.ReplaceAll(answer, "EVIL", evil)
			}
			out, notes, err := kittest.TalkTo(t, tt.command, tt.answers, tt.args...)
			said := out + "\n" + notes
			if err != nil {
				said += "\n" + err.Error()
			}
			if !strings.Contains(said, "a/b") || strings.ContainsAny(said, "\x1b\u202e\u009b") || strings.Contains(said, "\nforged") {
				t.Errorf("it has said %q", said)
			}
		})
	}
}
