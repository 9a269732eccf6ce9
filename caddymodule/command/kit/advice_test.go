package kit

import (
	"testing"

	"github.com/spf13/cobra"
)

// What the server says of its endpoints and fields is said of commands and flags.
func TestInCommands(t *testing.T) {
	t.Parallel()
	cmd := new(cobra.Command)
	cmd.Flags().Int("context-length", 0, "")
	for message, want := range map[string]string{
		"Load it with POST /api/v1/models/load.":                           `Load it with "lmcaddy load".`,
		"Unload it with POST /api/v1/models/unload.":                       `Unload it with "lmcaddy unload".`,
		"GET /api/v1/models lists the models.":                             `"lmcaddy ls" lists the models.`,
		"GET /api/v1/models lists the loaded instances.":                   `"lmcaddy ps" lists what is loaded.`,
		"GET /api/v1/models/download lists them.":                          `"lmcaddy get" lists them.`,
		"Cancel it with POST /api/v1/models/download/job_1a/cancel first.": `Cancel it with "lmcaddy get --cancel job_1a" first.`,
		`"context_length" must be from 1 to 9.`:                            `--context-length must be from 1 to 9.`,
		"`max_loaded` is 1.":                                               "`max_loaded` is 1.",
		"https://hub.lan answered 404 Not Found: there is no such model":   "there is no such model",
	} {
		if got := inCommands(cmd, message); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
}
