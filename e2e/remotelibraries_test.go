package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestRemote_ThatRequiresAToken: a server that has no model and no engine, but a remote: another lmcaddy, which requires a token.
func TestRemote_ThatRequiresAToken(t *testing.T) {
	t.Parallel()
	home := withOthers(harness.NewHome(t))
	box := harness.Start(home, harness.Config{Site: []string{"lm_auth"}})
	key := created(t, home, "--name", "door")
	door := newDoor(t)
	s := harness.Start(door, harness.Config{LM: append([]string{remoteBlock(box.Base, "box", "key {file."+door.WriteFile("key", key)+"}"), "list_models all"}, withClaude.LM...)})
	waitModel(s, harness.Model, true)

	first := s.NativeChat(harness.NativeAsk("My name is Ada."))
	second := s.NativeChat(harness.NativeAsk("What is my name?").With("previous_response_id", first.Get("response_id").Str))
	if !strings.Contains(second.Get("output").Raw, "Ada") {
		t.Errorf("a stored conversation: %s", second.Raw)
	}
	if log := s.Log() + s.Get("/api/v1/ps").Body; strings.Contains(log, key) {
		t.Error("the key of the remote is told")
	}
	if used := box.As(key).Get("/api/v1/usage?by=token").Want(t, http.StatusOK); used.Get("total.requests").Int() == 0 {
		t.Errorf("the remote counts nothing for the door: %s", used.Body)
	}
}

// TestRemote_EveryLibrary: the official libraries, with tools of MCP servers, through a server whose models are on another lmcaddy, and through one
// whose models are on llama-servers.
func TestRemote_EveryLibrary(t *testing.T) {
	t.Parallel()
	home := withOthers(harness.NewHome(t))
	executable := home.OwnRuntimes()
	ollama := buildOllama(t)
	blocks := map[string][]string{
		"lmcaddy": {remoteBlock(harness.Start(home, harness.Config{}).Base, "box")},
		"llama-server": {
			remoteBlock(startLlamaServer(home, executable, harness.Model, "-c", "8192"), "chat", "key far-key"),
			remoteBlock(startLlamaServer(home, executable, embedModel, "--embeddings"), "embed", "key far-key"),
		},
	}
	for name, remotes := range blocks {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(newDoor(t), harness.Config{LM: slices.Concat(remotes, openRemote, withClaude.LM, []string{"list_models all"})})
			waitModel(s, harness.Model, true)
			waitModel(s, embedModel, true)
			url := harness.StartEverything(t, "streamableHttp")
			runNode(t, s, "openai", "openai.cjs", "remote")
			runNode(t, s, "openai", "responses.cjs", url)
			runNode(t, s, "@anthropic-ai/sdk", "anthropic.cjs")
			runNode(t, s, "@ai-sdk/anthropic", "ai-sdk.cjs", url)
			runNode(t, s, "ollama", "ollama.cjs", "remote")
			runOllama(t, s, ollama, "remote")
			m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
			said := s.In(t).NativeChat(harness.NativeAsk(useStatus).With("integrations", []any{m.Ephemeral("river")})) // llama-server doesn't tell whether it reasons
			if call := said.Get(`output.#(type=="tool_call")`); call.Get("tool").Str != "status" || said.Get(`output.#(type=="message")#|@reverse|0.content`).Str != returned+redRiver {
				t.Errorf("with a tool of an MCP server: %s", said.Raw)
			}
		})
	}
}
