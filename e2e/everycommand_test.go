package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// typed is a command as its page describes it.
type typed struct {
	words []string // its name
	args  []string // an argument for each that it needs, which names nothing
	flags []string
	// acts says that the command does something without a server or anything that exists: only its errors about flags are tried.
	acts bool
}

var (
	section  = regexp.MustCompile(`(?m)^###? ([a-z ]+)$`)
	optional = regexp.MustCompile(`\[[^\]]*\]`)
	needed   = regexp.MustCompile(`\b[A-Z][A-Z/]*\b`)
	tableRow = regexp.MustCompile("(?m)^\\| `(?:-[a-zA-Z], )?--([a-z-]+)")
)

// everyCommand returns the commands in docs/commands.md, which is made of them all. So a new command is tried as well.
func everyCommand(t *testing.T) []typed {
	t.Helper()
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	at := section.FindAllStringSubmatchIndex(string(text), -1)
	var all []typed
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name, page := string(text[m[2]:m[3]]), string(text[m[1]:end])
		c := typed{words: strings.Fields(name), acts: name == "serve" || strings.HasPrefix(name, "service")}
		_, usage, isLeaf := strings.Cut(page, "\n    lmcaddy "+name)
		usage, _, _ = strings.Cut(usage, "\n")
		usage, _, _ = strings.Cut(optional.ReplaceAllString(usage, ""), " | ")
		for range needed.FindAllString(usage, -1) {
			c.args = append(c.args, "no/such")
		}
		for _, row := range tableRow.FindAllStringSubmatch(page, -1) {
			c.flags = append(c.flags, row[1])
		}
		c.acts = c.acts || !isLeaf
		all = append(all, c)
	}
	return all
}

// technical are words that no error has: those of HTTP, of Go, and of the API's requests.
var technical = regexp.MustCompile(`\b(HTTP/|GET|POST|PATCH|DELETE|[45][0-9][0-9]|status code|Unauthorized|Forbidden|Bad Request|Not Found|goroutine|nil pointer|unmarshal|strconv|pflag|JSON input)\b|_error\b|invalid_request`)

// whatIsWrong returns what is wrong with an answer of a command; empty: nothing. An error is one line, in plain words.
func whatIsWrong(asJSON bool, status int, stdout, stderr string) string {
	errors := 0
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "Error: ") {
			errors++
		}
	}
	switch last := stderr[strings.LastIndexByte(strings.TrimRight(stderr, "\n"), '\n')+1:]; {
	case status != 0 && status != 1:
		return "the exit status is neither 0 nor 1"
	case status == 0 && errors > 0 || status == 1 && errors != 1:
		return "it fails without one error, or has an error and doesn't fail"
	case status == 1 && !strings.HasPrefix(last, "Error: "):
		return "the error isn't the last line"
	case technical.MatchString(stderr):
		return "the error isn't in the words of the command line: " + technical.FindString(stderr)
	case asJSON && stdout != "" && !json.Valid([]byte(stdout)):
		return "it prints something else than JSON"
	case status == 1 && !asJSON && stdout != "":
		return "a failure prints something to standard output"
	}
	return ""
}

// TestEveryCommand types each command wrongly, and where it can't succeed.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	commands := everyCommand(t)
	if len(commands) < 40 {
		t.Fatalf("only %d commands are found", len(commands))
	}
	fails := func(t *testing.T, h *harness.Home, args ...string) {
		t.Helper()
		status, stdout, stderr := h.CommandOutputs(args...)
		if wrong := whatIsWrong(slices.Contains(args, "--json"), status, stdout, stderr); wrong != "" || status == 0 {
			t.Errorf("lmcaddy %s: status %d, %s\nstdout: %s\nstderr: %s", strings.Join(args, " "), status, wrong, stdout, stderr)
		}
	}
	t.Run("typed wrongly", func(t *testing.T) {
		h := h.In(t)
		for _, c := range commands {
			fails(t, h, slices.Concat(c.words, []string{"--no-such-flag"})...)
			if c.acts {
				continue
			}
			fails(t, h, slices.Concat(c.words, []string{""})...)
			if len(c.args) > 0 {
				fails(t, h, c.words...)
			}
		}
	})
	t.Run("without a server", func(t *testing.T) {
		h := h.In(t)
		for _, c := range commands {
			if slices.Contains(c.flags, "host") && !c.acts {
				fails(t, h, slices.Concat(c.words, c.args, c.json(), []string{"--host", "127.0.0.1:1"})...)
			}
		}
	})
	t.Run("with a token that may little", func(t *testing.T) {
		h := h.In(t)
		config := harness.Config{Port: harness.FreePort(t), Site: []string{"lm_auth"}}
		s := h.Launch(config.Port, "run", "--config", h.WriteFile("Caddyfile", config.String()))
		_, token, _ := h.CommandOutputs("token", "create", "--name", "poor", "--scopes", "inference")
		h.Env = append(h.Env, "LM_API_TOKEN="+strings.TrimSpace(token[strings.Index(token, "sk-lm-"):]))
		tried := 0
		for _, c := range commands {
			if !slices.Contains(c.flags, "host") || c.acts {
				continue
			}
			if tried++; tried%5 == 0 { // it would slow down those that guess tokens
				s.Stop(syscall.SIGINT, harness.Patience)
				s = h.Launch(config.Port, "run", "--config", filepath.Join(h.Work, "Caddyfile"))
			}
			args := slices.Concat(c.words, c.args, c.json(), []string{"--host", s.Base})
			status, stdout, stderr := h.CommandOutputs(args...)
			if wrong := whatIsWrong(c.json() != nil, status, stdout, stderr); wrong != "" {
				t.Errorf("lmcaddy %s: status %d, %s\nstdout: %s\nstderr: %s", strings.Join(args, " "), status, wrong, stdout, stderr)
			}
			if strings.Contains(stderr, "lacks the scope") && !strings.Contains(stderr, "lmcaddy token edit") {
				t.Errorf("lmcaddy %s doesn't say what to do: %s", strings.Join(args, " "), stderr)
			}
			fails(t, h, append(args, "--token", "sk-lm-wrong")...)
		}
	})
	if left, err := filepath.Glob(filepath.Join(h.Work, "no")); err != nil || len(left) > 0 {
		t.Errorf("a command that failed has left %q, %v", left, err)
	}
}

// json is the flag for JSON, if the command has it.
func (c *typed) json() []string {
	if slices.Contains(c.flags, "json") {
		return []string{"--json"}
	}
	return nil
}
