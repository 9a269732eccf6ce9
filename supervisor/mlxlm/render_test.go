package mlxlm

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes/venv"
)

const (
	hello  = `[{"role":"user","content":"Hello"}]`
	calls  = `[{"role":"user","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}]`
	noBody = `[{"role":"system","content":"Rules"}]`
)

// rendered renders chats with the environment of a command. A refusal is "refused".
func rendered(ctx context.Context, chats [][3]string, path string, args ...string) (prompts []string, _ error) {
	raw := func(text string) json.RawMessage {
		if text == "" {
			return nil
		}
		return json.RawMessage(text)
	}
	s := spec(1)
	s.Model.Path = "/models/m"
	err := new(Process).Rendering(ctx, s, process.Build{Path: path, Args: args}, func(render process.Render) error {
		for _, c := range chats {
			prompt, ok, err := render(raw(c[0]), raw(c[1]), raw(c[2]))
			if err != nil {
				return err
			}
			if !ok {
				prompt = "refused"
			}
			prompts = append(prompts, prompt)
		}
		return nil
	})
	return prompts, err
}

// Whatever command starts the server, its Python is asked.
func TestRendering_FindsThePython(t *testing.T) {
	t.Parallel()
	fake := fakemlx.Install(t, &fakemlx.Script{Renders: true, Rules: []fakekit.Rule{{Contains: "Rules", Status: 404}}})
	beside := func(name string) string { return filepath.Join(filepath.Dir(fake.Path), name) }
	linked, alone := filepath.Join(t.TempDir(), "mlx_lm.server"), filepath.Join(t.TempDir(), "mlx_lm.server")
	script := beside("mlx_lm.server-3") // the fake's are links, too
	if err := errors.Join(os.WriteFile(script, nil, 0o600), os.Symlink(script, linked), os.WriteFile(alone, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		command []string
		fails   string
	}{
		"the server":         {command: []string{fake.Path}},
		"a link to it":       {command: []string{linked}},
		"the command":        {command: []string{beside("mlx_lm"), "server"}},
		"python":             {command: []string{beside("python3"), "-m", "mlx_lm", "server"}},
		"python with a flag": {command: []string{beside("python3"), "-I", "-m", "mlx_lm.server"}},
		"another module":     {[]string{beside("python3"), "-m", "another"}, "the Python of the engine's command isn't known"},
		"another program":    {[]string{"/bin/sh", "serve.sh"}, "the Python of the engine's command isn't known"},
		"nothing beside it":  {[]string{alone}, "the Python of the engine's command isn't known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := rendered(t.Context(), [][3]string{{hello, "", `{"enable_thinking":false}`}, {noBody, "", ""}, {hello, "", ""}}, c.command[0], c.command[1:]...)
			if c.fails != "" {
				if err == nil || err.Error() != c.fails {
					t.Errorf("error %v, want %s", err, c.fails)
				}
				return
			}
			const prompt = "<|im_start|>user Hello <|im_end|> <|im_start|>assistant"
			if diff := cmp.Diff([]string{prompt + " <think> </think>", "refused", prompt}, got); diff != "" || err != nil {
				t.Errorf("error %v, prompts (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRendering_Fails(t *testing.T) {
	t.Parallel()
	chats := [][3]string{{hello, "", ""}}
	fake := fakemlx.Install(t, &fakemlx.Script{})
	if _, err := rendered(t.Context(), chats, fake.Path); err == nil || !strings.Contains(err.Error(), "this python3 only knows -m mlx_lm") {
		t.Errorf("error %v, want the program's words", err)
	}
	slow := fakemlx.Install(t, &fakemlx.Script{Renders: true, HelpHangs: true})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := rendered(ctx, chats, slow.Path)
		failed <- err
	}()
	asked := slow.Wait(t, fakekit.Is(fakekit.Probe))
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	slow.WaitGone(t, asked.PID)
}

// The modules of the server that the program uses, and a template.
var modules = map[string]string{
	"__init__.py": "print('noise')\n",
	"server.py": `import json
def process_message_content(messages):
    for m in messages:
        if isinstance(m["content"], list):
            m["content"] = "".join(p["text"] for p in m["content"])
        for call in m.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
`,
	"utils.py": `import os, sys
class Tokenizer:
    def __init__(self, folder, config):
        self.head = f"{folder} {config['trust_remote_code']} {os.environ['HF_HUB_OFFLINE']} {os.environ.get('LMCADDY_SECRET')}"
    def apply_chat_template(self, messages, tools, add_generation_prompt, tokenize, enable_thinking=True):
        print("more noise")
        if messages[0]["role"] == "system":
            raise ValueError("No system messages.")
        return f"{self.head} {messages} {tools} {add_generation_prompt} {tokenize} {enable_thinking}"
def load_tokenizer(path, config):
    return Tokenizer(path, config)
`,
}

// The program runs in a real environment, with stand-ins for what it imports.
func TestRendering_Program(t *testing.T) {
	t.Setenv("LMCADDY_SECRET", "secret")
	python, err := venv.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages, _ := filepath.Glob(filepath.Join(root, "lib", "python3*", "site-packages"))
	if len(packages) != 1 {
		t.Fatalf("folders of packages: %v", packages)
	}
	folder := filepath.Join(packages[0], "mlx_lm")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range modules {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := filepath.Join(root, "bin", "python3")
	got, err := rendered(t.Context(), [][3]string{{hello, `[{"type":"function"}]`, `{"enable_thinking":false}`}, {noBody, "", ""}, {calls, "", ""}, {hello, "", `{"unknown":1}`}},
		command, "-I", "-m", "mlx_lm", "server")
	const head = "/models/m False 1 None "
	want := []string{
		head + "[{'role': 'user', 'content': 'Hello'}] [{'type': 'function'}] True False False", "refused",
		head + "[{'role': 'user', 'content': 'AB'}, {'role': 'assistant', 'content': '', 'tool_calls': [{'function': {'name': 'f', 'arguments': {'x': 1}}}]}] None True False True",
		"refused",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, prompts (-want +got):\n%s", err, diff)
	}
	if err := os.Remove(filepath.Join(folder, "utils.py")); err != nil {
		t.Fatal(err)
	}
	_, err = rendered(t.Context(), [][3]string{{hello, "", ""}}, command, "-I", "-m", "mlx_lm", "server")
	if err == nil || !strings.Contains(err.Error(), "ModuleNotFoundError: No module named 'mlx_lm.utils'") {
		t.Errorf("error %v, want the exception", err)
	}
}
