package command

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestOfOllama(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"run qwen3":             "chat qwen3",
		"run qwen3 why not":     "chat qwen3 --prompt why·not",
		"run qwen3 --stats why": "chat qwen3 --stats --prompt why",

		"run qwen3 --system terse why not": "chat qwen3 --system terse --prompt why·not",
		"run qwen3 why -s terse --ttl=5m":  "chat qwen3 -s terse --ttl=5m --prompt why",
		"run qwen3 --continue why":         "chat qwen3 --continue --prompt why",
		"run qwen3 -- --why -":             "chat qwen3 --prompt --why·-",
		"run qwen3 --system":               "chat qwen3 --system",
		"run":                              "run",
		"run --config a":                   "run --config a",
		"run Caddyfile":                    "run Caddyfile",
		"run some.caddyfile":               "run some.caddyfile",
		"run a.json":                       "run a.json",
		"run config":                       "run config",
		"stop qwen3":                       "unload qwen3",
		"stop":                             "stop",
		"stop --address a":                 "stop --address a",
		"ls":                               "ls",
		"rm run":                           "rm run",
	} {
		got := ofOllama(strings.Fields(line))
		wanted := strings.Fields(want)
		for i := range wanted {
			wanted[i] = strings.ReplaceAll(wanted[i], "·", " ")
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestEverydayWords runs each word in a program whose commands say their names.
func TestEverydayWords(t *testing.T) {
	for line, want := range map[string]string{
		"list":                 "ls",
		"pull qwen3":           "get qwen3",
		"delete a/b":           "rm a/b",
		"server status":        "status",
		"server status --json": "status --json=true",
		"server stop":          "stop",
		"daemon down":          "stop",
		"daemon status":        "status",
		"server start":         `there is no command "lmcaddy server": "lmcaddy start" starts`,
		"server":               `there is no command "lmcaddy server": "lmcaddy start" starts`,
		"daemon up --json":     `there is no command "lmcaddy daemon": "lmcaddy start" starts`,
		"create x -f y":        `there is no command "lmcaddy create": a GGUF file`,
		"push x":               `there is no command "lmcaddy push": lmcaddy downloads`,
		"cp a b":               `"lmcaddy import FILE`,
		"signin":               "lmcaddy needs no account",
		"login":                "lmcaddy needs no account",
		"whoami":               "lmcaddy needs no account",
		"link enable":          `"lmcaddy ls --host URL"`,
		"clone a/b":            `"lmcaddy get MODEL"`,
		"bootstrap":            "nothing has to be set up",
		"dev":                  "MCP servers",
		"launch claude":        "start the program yourself",
		"publish":              "uploads none",
		"logout":               "no account",
		"signout":              "no account",
	} {
		root := program(t)
		said := ""
		tell := func(cmd *cobra.Command, args []string) error {
			said = strings.TrimSpace(cmd.Name() + " " + strings.Join(args, " "))
			if f := cmd.Flags().Lookup("json"); f != nil && f.Changed {
				said += " --json=" + f.Value.String()
			}
			return nil
		}
		for _, c := range root.Commands() {
			if !c.Hidden {
				c.RunE, c.Run = tell, nil
			}
		}
		root.SetArgs(strings.Fields(line))
		root.SilenceErrors, root.SilenceUsage = true, true
		if err := root.Execute(); err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) || !strings.Contains(want, " ") && said != want {
			t.Errorf("lmcaddy %s: %q, want %q", line, said, want)
		}
	}
}

// TestEverydayFlags_AreNotOurs looks for flags that are answered, although the command has them.
func TestEverydayFlags_AreNotOurs(t *testing.T) {
	root := program(t)
	for name, flags := range everydayFlags {
		cmd, rest, err := root.Find(strings.Fields(name))
		if err != nil || len(rest) > 0 {
			t.Errorf("there is no command %s: %v", name, err)
			continue
		}
		for flag := range flags {
			if len(flag) == 1 && cmd.Flags().ShorthandLookup(flag) != nil || cmd.Flags().Lookup(flag) != nil {
				t.Errorf("lmcaddy %s has the flag %s", name, flag)
			}
		}
	}
	for line, want := range map[string]string{
		"load x --gpu max":     "lmcaddy load has no flag --gpu: the engine",
		"load x -y":            "lmcaddy load has no flag -y: leave it out",
		"load x --ctx-size 9":  "--context-length does this",
		"chat --model x":       "name the model first",
		"chat --temp 1":        "did you mean --temperature?",
		"chat x --verbose":     "--stats prints",
		"ls --port 1":          "--host http://127.0.0.1:1234",
		"runtime remove x -y":  "leave it out",
		"runtime update -a":    "gets the newest release",
		"runtime survey":       `"lmcaddy doctor" looks`,
		"import x --user-repo": "--repo PUBLISHER/NAME",
	} {
		root := program(t)
		root.SetArgs(strings.Fields(line))
		root.SilenceErrors, root.SilenceUsage = true, true
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lmcaddy %s: %v, want %q", line, err, want)
		}
	}
}
