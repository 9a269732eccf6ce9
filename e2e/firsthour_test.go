package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const firstHourIntroduction = `# The first hour

What a new user types, and sees on a terminal of 80 columns, as recorded by a test (` + "`TestFirstHour`" + `) in a new clone and an empty home, with a
hub of its own instead of huggingface.co, and the small model that comes with lmcaddy. Times, ids, sizes, versions and what ` + "`doctor`" + ` finds differ
elsewhere. [Commands](commands.md) lists all commands with their flags.

## The first answer

These are the [README](../README.md)'s first commands. Left out are building the program and downloading the engine, which ` + "`make run`" + ` does first, and
what the server logs of its models.
`

// TestFirstHour types what a user does in the first hour, and compares the screens with docs/first-hour.md. Unless -whole-first-hour is
// given, the clone gets the built program and the home the engine of the tests, which would take minutes.
func TestFirstHour(t *testing.T) {
	t.Parallel()
	n := newcomer(t)
	n.page.WriteString(firstHourIntroduction)
	n.readme()
	n.ownServer()
	n.otherPrograms()
	n.compare()
}

// readme types the first commands of the README.
func (n *newUser) readme() {
	var server *harness.Terminal
	for _, b := range blocksOf(n.t, filepath.Join(n.clone, "README.md")) {
		if strings.Contains(b.text, "make install") || strings.HasPrefix(b.text, "lmcaddy ") {
			break // the first screen ends
		}
		if b.kind != "sh" {
			continue
		}
		for _, command := range commandsOf(b.text) {
			if command == "make run" {
				server = n.serves(command, "model loaded")
			} else {
				n.types(command)
			}
		}
	}
	n.types("bin/lmcaddy stop")
	if status := server.End(); status != 0 {
		n.t.Errorf("make run ends with status %d", status)
	}
}

// ownServer starts a server with a Caddyfile, for this machine and another.
func (n *newUser) ownServer() {
	n.h.Work = n.home
	recipe := shown(n.t, "../docs/recipes/lan.md", "permission lm")
	n.put("Caddyfile", []byte(strings.NewReplacer(
		"\tlm {\n", "\tlm {\n\t\tmemory_budget 2GiB\n\t\thub "+n.hub.URL+"\n\t\tmodel "+harness.Model+" {\n\t\t\tcontext_length 4096\n\t\t\tparallel 2\n\t\t}\n",
		":8443 {", fmt.Sprintf(":%d {\n\tbind 127.0.0.1", n.tls),
	).Replace(recipe)))
	n.says("## Models\n\n`lmcaddy` now stands for `bin/lmcaddy`. The folder has the Caddyfile of [TLS on the local network](recipes/lan.md), with this hub, and with the\n" +
		"options `memory_budget 2GiB`, and `context_length 4096` and `parallel 2` for lmcaddy/tinychat.")
	server := n.serves("lmcaddy run", "")
	n.says("A name that the hub doesn't have is searched for. A download shows its progress, and Ctrl-C leaves it to the server.")
	get := n.begins("lmcaddy get tiny")
	get.Wait("Which one?")
	get.Type("1\r")
	get.Wait(" left")
	under := get.Raw()
	n.shows("lmcaddy get tiny", under[:strings.LastIndex(under, " left")+len(" left")])
	get.Type("\x03")
	get.Wait("the download continues")
	job := regexp.MustCompile(`job_\w+`).FindString(get.Shown())
	get.End()
	n.types("lmcaddy get --pause " + job)
	n.types("lmcaddy get")
	n.hub.mend()
	n.types("lmcaddy get --resume " + job)
	n.put("Downloads/Gemma-3-4B-Q4_K_M.gguf", harness.ShippedModel(n.t))
	n.types("lmcaddy import ~/Downloads/Gemma-3-4B-Q4_K_M.gguf")
	n.types("lmcaddy ls")
	n.types("lmcaddy show tinychat")
	n.fails("lmcaddy load gema-3-4b")
	n.chat()
	n.otherMachine()
	n.says("## What happened")
	for _, command := range []string{"ps", "conversations ls", "usage --since today", "log --lines 4 --model " + harness.Model, "doctor"} {
		n.types("lmcaddy " + command)
	}
	server.Type("\x03")
	server.End()
}

// chat has a conversation, in which more is typed while an answer is awaited.
func (n *newUser) chat() {
	n.says("## A conversation\n\nIt loads its model. What the model thinks, before its answer, is dim. What is typed and pasted while an answer arrives, here two lines that are\n" +
		"pasted and Enter, is the next message.")
	const command = "lmcaddy chat tinychat --temperature 0"
	chat := n.begins(command)
	chat.Wait("/help for help")
	for _, step := range [][2]string{
		{"/help", "earlier questions"}, {"Hello!", "How can I help"}, {"/set temprature 1", "temperature?"}, {"/set stats on", "stats on\r"},
	} {
		chat.Wait("> ")
		chat.Type(step[0] + "\r")
		chat.Wait(step[1])
	}
	chat.Wait("> ")
	engine := n.h.Engine()
	engine.Pause(n.t)
	chat.Type(capital + "\r")
	chat.Wait("\n") // it is asked
	chat.Type(pasted("My name is Ada.\rWhat is my name?") + "\r")
	engine.Resume(n.t)
	for range 2 {
		chat.Wait("tokens/s")
	}
	chat.Wait("> ")
	chat.Type(pasted("First line\rand second line\r"))
	chat.Wait("second line")
	chat.Type("\x03")
	chat.Wait("> ")
	chat.Type("/bye\r")
	chat.Wait("--continue")
	n.ends(chat, command, 0)
}

// otherMachine asks the server from another home.
func (n *newUser) otherMachine() {
	const base = "https://127.0.0.1:8443"
	n.says("## Another machine\n\nA guest gets a token.")
	n.types("lmcaddy token create --name guest --scopes inference --expires 30d")
	token := regexp.MustCompile(`sk-lm-[\w:]+`).FindString(created(n.t, n.built(), "--name", "guest's second", "--scopes", "inference"))
	n.says("This is the guest's machine.")
	other := []string{"LMCADDY_HOME=" + filepath.Join(n.home, "guest")}
	n.fails("lmcaddy ls --host "+base, other...)
	n.types("curl --insecure -o lmcaddy-root.crt "+base+"/api/v1/root.crt", other...)
	other = append(other, "SSL_CERT_FILE=lmcaddy-root.crt")
	n.shows("export SSL_CERT_FILE=lmcaddy-root.crt", "")
	n.fails("lmcaddy ls --host "+base, other...)
	other = append(other, "LM_API_TOKEN="+token)
	n.shows("export LM_API_TOKEN="+token, "")
	n.types("lmcaddy ls --host "+base, other...)
	n.types(`lmcaddy chat tinychat --temperature 0 --prompt "`+capital+`" --host `+base, other...)
	n.fails("lmcaddy unload tinychat --host "+base, other...)
}

// built is the home whose commands run the program itself.
func (n *newUser) built() *harness.Home {
	h := *n.h
	h.Binary = filepath.Join(n.clone, "bin", "lmcaddy")
	return &h
}

// otherPrograms takes over the models and settings of three programs, and serves them as those did.
func (n *newUser) otherPrograms() {
	n.says("## Coming from another program\n\nOllama, LM Studio and llama-swap have the small model, too, each with settings of its own.")
	model := harness.ShippedModel(n.t)
	blob := func(content []byte) string {
		sum := sha256.Sum256(content)
		digest := hex.EncodeToString(sum[:])
		n.put(".ollama/models/blobs/sha256-"+digest, content)
		return "sha256:" + digest
	}
	n.put(".ollama/models/manifests/registry.ollama.ai/library/capitals/1m", fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":%q},"layers":[
		{"mediaType":"application/vnd.ollama.image.model","digest":%q},{"mediaType":"application/vnd.ollama.image.template","digest":%q},
		{"mediaType":"application/vnd.ollama.image.system","digest":%q},{"mediaType":"application/vnd.ollama.image.params","digest":%q}]}`,
		blob([]byte("{}")), blob(model), blob([]byte("{{ .Prompt }}")), blob([]byte("Be brief.")), blob([]byte(`{"num_ctx":1024,"stop":["<end>"],"temperature":0}`))))
	n.put(".lmstudio/models/ann/Capitals-GGUF/Capitals-f16.gguf", model)
	n.put(".lmstudio/settings.json", []byte(`{"developer":{"jitModelTTL":{"enabled":true,"ttlSeconds":900}}}`))
	n.put(".lmstudio/.internal/http-server-config.json", []byte(`{"port":1234,"networkInterface":"127.0.0.1","cors":true}`))
	n.put(".lmstudio/.internal/user-concrete-model-default-config/ann/Capitals-GGUF/Capitals-f16.gguf.json", []byte(`{"load":{"fields":[
		{"key":"llm.load.contextLength","value":512},{"key":"llm.load.llama.acceleration.offloadRatio","value":"max"}]},"operation":{"fields":[
		{"key":"llm.prediction.temperature","value":0},{"key":"llm.prediction.systemPrompt","value":"Answer in one sentence."}]}}`))
	n.put("llama-swap/config.yaml", fmt.Appendf(nil, `
healthCheckTimeout: 60
macros: {server: "llama-server --port ${PORT}"}
models:
  capitals-fast:
    cmd: |
      ${server} -m %s/.lmstudio/models/ann/Capitals-GGUF/Capitals-f16.gguf -c 1024 -np 2 --threads 1
    aliases: [gpt-4o]
    ttl: 60
`, n.home))
	for _, p := range []struct{ program, from, port, model, context string }{
		{"ollama", "ollama", ":11434", "capitals:1m", "1024"},
		{"lmstudio", "lmstudio", ":1234", "ann/capitals", "512"},
		{"llama-swap", "llama-swap llama-swap/config.yaml", ":8080", "gpt-4o", "512"},
	} {
		file := p.program + ".Caddyfile"
		n.types("lmcaddy import --from " + p.from + " --output " + file)
		n.types("cat " + file)
		written, err := os.ReadFile(filepath.Join(n.home, file))
		if err != nil {
			n.t.Fatal(err)
		}
		n.put(file, []byte(strings.ReplaceAll(string(written), p.port, fmt.Sprintf(":%d", n.port))))
		server := n.serves("lmcaddy run --config "+file, "")
		n.types("lmcaddy chat " + p.model + ` --temperature 0 --prompt "` + capital + `"`)
		n.types("lmcaddy ps")
		if out := n.built().Command("ps", "--json").Output; !strings.Contains(out, `"context_length": `+p.context) {
			n.t.Errorf("the context isn't %s: %s", p.context, out)
		}
		server.Type("\x03")
		server.End()
	}
}
