package caddymodule

import (
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
)

func TestAsksForHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"": true, "help": true, "help run": true, "run --help": true, "ls -h": true, "run": false, "run --config help": false,
		"chat m -- --help": false, "completion bash": true,
	} {
		if got := asksForHelp(strings.Fields(line)); got != want {
			t.Errorf("lmcaddy %s: %v", line, got)
		}
	}
}

func TestStrayArgument(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"run":                           "",
		"run --config Caddyfile":        "",
		"run -c Caddyfile -w":           "",
		"run --pingback 127.0.0.1:9":    "",
		"run Caddyfile":                 `lmcaddy run takes no arguments, and was given "Caddyfile"; a configuration is given by --config FILE`,
		"run --config a Caddyfile":      `lmcaddy run takes no arguments, and was given "Caddyfile"; a configuration is given by --config FILE`,
		"run --watch Caddyfile":         `lmcaddy run takes no arguments, and was given "Caddyfile"; a configuration is given by --config FILE`,
		"stop now":                      `lmcaddy stop takes no arguments, and was given "now"`,
		"stop --address unix//a/b.sock": "",
		"serve --listen 127.0.0.1:1 x":  `lmcaddy serve takes no arguments, and was given "x"`,
		"run --nonsense X":              "", // for Caddy to tell
		"fmt Caddyfile":                 "",
		"chat qwen":                     "",
		"nonsense X":                    "",
	} {
		args := strings.Fields(line)
		got := ""
		if err := strayArgument(args[0], args[1:]); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("lmcaddy %s: %q, want %q", line, got, want)
		}
	}
}

func TestSaysNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	check := func(want map[string]bool) {
		t.Helper()
		for line, want := range want {
			if got := saysNothing(strings.Fields(line)); got != want {
				t.Errorf("lmcaddy run %s: %v", line, got)
			}
		}
	}
	check(map[string]bool{
		"": true, "--watch": true, "--pingback 127.0.0.1:9 --pidfile p": true, "--envfile a --adapter caddyfile": true,
		"--config a": false, "-c a": false, "--config -": false, "--resume": false, "-r": false,
	})
	if err := os.WriteFile("Caddyfile", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"": false, "--watch": false})
}

func TestAbsolute(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	t.Chdir("/")
	for path, want := range map[string]string{
		"/srv/models": "/srv/models", "models": "/models", "~": "/home/ann", "~/models": "/home/ann/models", "~bob/models": "/~bob/models",
		"./~": "/~",
	} {
		if got := absolute(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestCaddyfile_OptionsAreKnown: errors name no option that there isn't.
func TestCaddyfile_OptionsAreKnown(t *testing.T) {
	t.Parallel()
	parse := func(block, option string) error {
		_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(strings.Replace(block, "%", option, 1)), nil)
		return err
	}
	for block, options := range map[string][]string{
		"{\nlm {\n%\n}\n}":                             appOptions,
		"{\nlm {\nengine llama_server {\n%\n}\n}\n}":   engineOptions,
		"{\nlm {\nmodel a/b {\n%\n}\n}\n}":             modelOptions,
		"{\nlm {\nhub https://a.example {\n%\n}\n}\n}": hubOptions,
		"{\nlm {\nstore sqlite {\n%\n}\n}\n}":          storeOptions,
		"http://:1234 {\nlm_api {\n%\n}\n}":            handlerOptions,
	} {
		for _, option := range options {
			if err := parse(block, option); err != nil && strings.Contains(err.Error(), "unknown option") {
				t.Error(err)
			}
		}
		if err := parse(block, "nonsense 1"); err == nil || !strings.Contains(err.Error(), strings.Join(options, ", ")) {
			t.Errorf("an unknown option: %v", err)
		}
	}
}

func TestHasAlias(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"gpt-4o": true, "claude-opus": true, "claude/opus": false, "gpt": false, "": false} {
		if got := hasAlias([]string{"gpt-4o", "claude-*"}, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
