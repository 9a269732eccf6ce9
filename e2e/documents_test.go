package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// block is a fenced block of a document.
type block struct {
	kind string // the text after the backquotes: sh, caddyfile or another, such as "sh no-run"
	text string
}

var fenced = regexp.MustCompile("(?ms)^```([a-z][^\n]*)\n(.*?)^```$")

func blocksOf(t *testing.T, file string) []block {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// documents returns the paths of all documents.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"../README.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// follower follows a document, from its beginning to its end, in a home of its own.
type follower struct {
	t      *testing.T
	h      *harness.Home
	user   string // $HOME, where the home is .lmcaddy
	server *harness.Server
	isMake bool // make started the server, and ends with the status of a signal
	port   int
	token  string // the first that was made
	answer string // the last response's id
}

// The commands in the documents work.
func TestDocuments_CommandsRun(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, file := range documents(t) {
		t.Run(strings.TrimPrefix(file, "../"), func(t *testing.T) {
			f := follow(t)
			for _, b := range blocksOf(t, file) {
				switch b.kind {
				case "caddyfile":
					f.h.WriteFile("Caddyfile", f.here(b.text))
				case "sh":
					for _, command := range commandsOf(b.text) {
						f.run(command)
						commands++
					}
				default:
					if strings.HasPrefix(b.kind, "sh") && b.kind != "sh no-run" {
						t.Errorf("a block is marked %q", b.kind)
					}
				}
			}
		})
	}
	if commands < 20 {
		t.Errorf("only %d commands were found", commands)
	}
}

func follow(t *testing.T) *follower {
	h := harness.NewHome(t)
	f := &follower{t: t, h: h, user: filepath.Join(filepath.Dir(h.Dir), "me"), port: harness.FreePort(t)}
	h.AddModel("qwen/qwen3-4b", "Qwen3-4B-Q4_K_M.gguf", harness.ShippedModel(t))
	for _, dir := range []string{filepath.Join(f.user, "Downloads"), filepath.Join(h.Work, "bin"), filepath.Join(h.Work, "srv", "models")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{filepath.Join(f.user, ".lmcaddy"): h.Dir, filepath.Join(h.Work, "bin", "lmcaddy"): h.Program()} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.user, "Downloads", "Gemma-3-4B-Q4_K_M.gguf"), harness.ShippedModel(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// commandsOf returns the commands of a block, without their comments. Inside quotes, a command may span several lines.
func commandsOf(text string) []string {
	var all []string
	open := ""
	for line := range strings.Lines(text) {
		open += line
		if strings.Count(open, "'")%2 == 0 {
			command, _, _ := strings.Cut(open, " #")
			if command = strings.TrimSpace(command); command != "" {
				all = append(all, command)
			}
			open = ""
		}
	}
	return all
}

// here replaces the addresses, folders and secrets in a text of the document by those of this test.
func (f *follower) here(text string) string {
	port := strconv.Itoa(f.port)
	return strings.NewReplacer(
		"127.0.0.1:1234", "127.0.0.1:"+port, ":1234", ":"+port, "192.168.1.7:8443", "127.0.0.1:"+port, ":8443", ":"+port,
		"/srv/models", filepath.Join(f.h.Work, "srv", "models"), "/srv/new", filepath.Join(f.h.Work, "srv", "new"), "resp_…", f.answer,
	).Replace(text)
}

func (f *follower) run(command string) {
	f.t.Helper()
	listen := []string{"--listen", harness.Address(f.port)}
	switch words := strings.Fields(f.here(command)); {
	case command == "make run":
		root, err := filepath.Abs("..")
		if err != nil {
			f.t.Fatal(err)
		}
		f.serve("make", "-C", root, "-o", f.h.Program(), "run", "BIN="+f.h.Program(), "PORT="+strconv.Itoa(f.port))
		return
	case words[0] == "bin/lmcaddy" && words[1] == "serve":
		f.serve(words[0], append(words[1:], listen...)...)
		return
	case words[0] == "bin/lmcaddy" && words[1] == "run":
		f.serve(words[0], words[1:]...)
		return
	case f.server == nil:
		f.serve("bin/lmcaddy", append([]string{"serve"}, listen...)...)
	}
	command = f.here(strings.ReplaceAll(command, "curl ", "curl --silent --show-error --fail-with-body "))
	ctx, cancel := context.WithTimeout(f.t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = f.h.Work
	cmd.Env = []string{"HOME=" + f.user, "LMCADDY_HOME=" + f.h.Dir, "PATH=" + os.Getenv("PATH"), "LM_API_TOKEN=" + f.token}
	cmd.Stdin = strings.NewReader(capital) // for chats without a prompt
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		f.t.Errorf("%s: %v: %s", command, err, out.String())
	}
	if token := regexp.MustCompile(`sk-lm-\S+`).FindString(out.String()); f.token == "" {
		f.token = token
	}
	if id := regexp.MustCompile(`resp_[0-9a-z]+`).FindString(out.String()); id != "" {
		f.answer = id
	}
	if strings.Contains(command, capital) && !strings.Contains(out.String(), paris) {
		f.t.Errorf("%s: %s", command, out.String())
	}
}

// serve stops the running server, and starts the one that the document starts.
func (f *follower) serve(program string, args ...string) {
	f.t.Helper()
	if f.server != nil {
		if status := f.server.Stop(syscall.SIGTERM, harness.Patience); status != 0 && !f.isMake {
			f.t.Errorf("the server ended with status %d", status)
		}
	}
	h := f.h.In(f.t)
	f.isMake = program == "make"
	if f.isMake {
		path, err := exec.LookPath(program)
		if err != nil {
			f.t.Fatal(err)
		}
		h.Binary = path
	}
	f.server = h.Begin(f.port, args...)
	harness.Eventually(f.t, harness.Patience, "the server says that it serves", func() bool {
		if f.server.HasEnded() {
			f.t.Fatalf("%s %s: it has ended:\n%s", program, args, f.server.Log())
		}
		return strings.Contains(f.server.Log(), "Serving on ")
	})
}
