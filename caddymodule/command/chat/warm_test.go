package chat

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/warm"
	"github.com/lmcaddy/lmcaddy/warm/warmtest"
)

func TestWarm(t *testing.T) {
	t.Parallel()
	const (
		list  = "GET /api/v1/warm"
		clear = "DELETE /api/v1/warm"
	)
	before := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	two := fmt.Sprintf(`{"states":[
			{"model":"qwen/qwen3-4b","owner":"k3V9dPq2","tokens":20480,"size_bytes":2000000000,"created_at":%q,"last_used_at":%q},
			{"model":"m","owner":"","tokens":600,"size_bytes":1000000,"created_at":%q,"last_used_at":%q}]}`,
		before(150*time.Minute), before(90*time.Minute), before(36*time.Hour), before(36*time.Hour))
	for name, tt := range map[string]struct {
		answers   map[string]string
		arguments []string
		out, err  string
	}{
		"a list": {map[string]string{list: two}, []string{"ls"}, `
MODEL          OWNER     TOKENS  SIZE    CREATED      LAST USED
qwen/qwen3-4b  k3V9dPq2  20480   2.0 GB  2 hours ago  1 hour ago
m              -         600     1.0 MB  1 day ago    1 day ago
Together: 2.0 GB.
`[1:], ""},
		"of a model, they don't pay": {map[string]string{list: `{"states":[],"rates":[
			{"model":"m","pays_from_tokens":700,"prompt_tokens_per_second":100,"bytes_per_token":100000,"restore_bytes_per_second":1e9},
			{"model":"n","pays_from_tokens":null,"prompt_tokens_per_second":9800.3,"bytes_per_token":131072,"restore_bytes_per_second":2e8}]}`}, []string{"ls"}, `
No states of conversations are saved.
None are kept of n: to process its prompts again, 9800 tokens in a second, is faster than to restore states of 131 kB for a token at 200 MB in a second.
`[1:], ""},
		"an empty list":       {map[string]string{list: `{"states":[]}`}, []string{"ls"}, "No states of conversations are saved.\n", ""},
		"an empty one, JSON":  {map[string]string{list: `{"states":null}`}, []string{"ls", "--json"}, "{\n  \"states\": []\n}\n", ""},
		"clearing one":        {map[string]string{clear: `{"deleted":1,"size_bytes":1000000}`}, []string{"clear", "m"}, "One state was deleted (1.0 MB).\n", ""},
		"clearing several":    {map[string]string{clear: `{"deleted":2,"size_bytes":2000000000}`}, []string{"clear"}, "2 states were deleted (2.0 GB).\n", ""},
		"clearing none":       {map[string]string{clear: `{"deleted":0,"size_bytes":0}`}, []string{"clear"}, "There was nothing to delete.\n", ""},
		"of an unknown model": {nil, []string{"clear", "m"}, "", "Not /api/v1/warm."},
		"of two models":       {nil, []string{"clear", "m", "n"}, "", "accepts at most 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := kittest.TalkTo(t, DefineWarm, tt.answers, tt.arguments...)
			kittest.WantTalk(t, tt.out, tt.err, out, err)
		})
	}
}

// Without a server, the commands work on the home's folder. The environment is the whole process's, so this test isn't parallel.
func TestWarm_WithoutAServer(t *testing.T) {
	dir := home.Dir(t.TempDir())
	t.Setenv(home.Variable, string(dir))
	s, err := warm.Open(dir.Warm(), nil, warm.WithClock(func() time.Time { return time.Now().Add(-150 * time.Minute) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"lmcaddy/tinychat", "lmcaddy/tinymoe", "x/y"} {
		warmtest.Keep(t, s, model, prefix.State{Owner: "ann", Tokens: 700, Bytes: 1e6})
	}
	s.Close()
	run := func(arguments ...string) (string, error) {
		var out, notes bytes.Buffer
		cmd := &cobra.Command{Use: "warm", SilenceUsage: true}
		DefineWarm(cmd)
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		cmd.SetArgs(arguments)
		err := cmd.ExecuteContext(t.Context())
		if err == nil && !strings.Contains(notes.String(), "No lmcaddy is running on "+string(dir)) {
			t.Errorf("%q: it isn't said that no server runs: %s", arguments, &notes)
		}
		return out.String(), err
	}
	out, err := run("ls")
	if err != nil || !strings.Contains(out, "lmcaddy/tinychat  ann    700     1.0 MB  2 hours ago  2 hours ago") || !strings.Contains(out, "Together: 3.0 MB.") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, step := range []struct{ model, out, err string }{
		{"TinyChat", "One state was deleted (1.0 MB).\n", ""},
		{"tinychat", "", `there are no states of tinychat`},
		{"", "2 states were deleted (2.0 MB).\n", ""},
		{"", "There was nothing to delete.\n", ""},
	} {
		arguments := []string{"clear"}
		if step.model != "" {
			arguments = append(arguments, step.model)
		}
		out, err := run(arguments...)
		kittest.WantTalk(t, step.out, step.err, out, err)
	}
}
