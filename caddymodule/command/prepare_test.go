package command

import (
	"strings"
	"testing"
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
