package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit/kittest"
)

const (
	storedConversation = `{"id":"resp_3f9a1c22ab0011223344556677889900aabbccddeeff0011","title":"Why\u001b[31m?","dialect":"native","model":"p/m",
		"status":"completed","turns":2,"last_response_id":"resp_77","owner":"","created_at":"2026-01-31T12:00:00.000Z","updated_at":"2026-01-31T13:00:00.000Z"`
	storedTurns = `,"responses":[
		{"response_id":"resp_3f","model":"p/m","status":"completed","created_at":"2026-01-31T12:00:00Z","system_prompt":"Be brief.",
		 "input":[{"type":"image","data_url":"data:image/png;base64,AAAA"},{"type":"message","content":"Why?"}],
		 "output":[{"type":"reasoning","content":"Hm."},{"type":"tool_call","tool":"look","arguments":{"at": 1},"output":"[{\"type\":\"text\",\"text\":\"a \\u001b[2Jsky\"}]"},{"type":"message","content":"\nBecause.\u001b[2J"}],
		 "usage":{}},
		{"response_id":"resp_77","model":"p/m","status":"incomplete","created_at":"2026-01-31T13:00:00Z",
		 "input":[{"type":"message","role":"assistant","content":"Earlier."},{"type":"tool_result","content":"42"},{"type":"message","content":"And?"}],
		 "output":[{"type":"invalid_tool_call","reason":"no such tool","metadata":{"tool_name":"nope","arguments":{}}},{"type":"message","content":"Well"}],
		 "usage":{}}]`
)

// conversationsOf runs a sub-command of `lmcaddy conversations`.
func conversationsOf(t *testing.T, sub string, answers map[string]string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	return kittest.TalkTo(t, DefineConversations, answers, append([]string{sub}, arguments...)...)
}

func TestConversations_List(t *testing.T) {
	t.Parallel()
	recent := strings.Replace(storedConversation, "2026-01-31T13:00:00.000Z", time.Now().Add(-3*time.Minute).UTC().Format(time.RFC3339), 1)
	answers := map[string]string{"GET /api/v1/conversations": `{"conversations":[` + recent + `}],"next_cursor":null}`}
	out, notes, err := conversationsOf(t, "ls", answers)
	kittest.WantTalk(t, "ID          UPDATED        TURNS  MODEL  TITLE\n3f9a1c22ab  3 minutes ago  2      p/m    Why [31m?\n", "", out, err)
	if notes != "" {
		t.Errorf("%q", notes)
	}
	out, _, err = conversationsOf(t, "ls", answers, "--json")
	if err != nil || !strings.Contains(out, `"last_response_id": "resp_77"`) || !strings.Contains(out, `"next_cursor": null`) {
		t.Errorf("%v: %s", err, out)
	}
	out, _, err = conversationsOf(t, "ls", map[string]string{"GET /api/v1/conversations": `{"conversations":[],"next_cursor":null}`})
	kittest.WantTalk(t, "There are no conversations yet. \"lmcaddy chat\" begins one.\n", "", out, err)
	answers["GET /api/v1/conversations"] = `{"conversations":[` + recent + `}],"next_cursor":"x"}`
	out, notes, err = conversationsOf(t, "ls", answers, "--limit", "2") // two pages
	if err != nil || strings.Count(out, "3f9a1c22ab") != 2 || !strings.Contains(notes, "--limit 10 lists more") {
		t.Errorf("%v: %s%s", err, out, notes)
	}
}

func TestConversations_Show(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"GET /api/v1/conversations/3f9a1c": storedConversation + storedTurns + "}"}
	out, _, err := conversationsOf(t, "show", answers, "3f9a1c")
	kittest.WantTalk(t, `# Why [31m?

p/m, 2 turns, 2026-01-31T13:00:00Z

## System

Be brief.

*(an image, image/png)*

## You

Why?

*(called look({"at":1}))*

*(which returned a [2Jsky)*

## Model

Because.[2J

## Model

Earlier.

*(tool result: 42)*

## You

And?

*(called nope() in vain: no such tool)*

## Model

Well

*(the answer was cut off)*
`, "", out, err)
	if out, _, err := conversationsOf(t, "show", answers, "3f9a1c", "--thinking"); err != nil || !strings.Contains(out, "## Thinking\n\nHm.\n") {
		t.Errorf("%v: %s", err, out)
	}
	_, _, err = conversationsOf(t, "show", answers, "abcdef")
	kittest.WantTalk(t, "", "Not /api/v1/conversations/abcdef", "", err)
}

func TestConversations_Export(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"GET /api/v1/conversations/3f9a1c": storedConversation + storedTurns + "}"}
	for name, tt := range map[string]struct{ arguments, want string }{
		"x.md":     {"", "## Thinking\n\nHm.\n"},
		"x.json":   {"", `"data_url": "data:image/png;base64,AAAA"`},
		"x.txt":    {"json", `"turns": 2`},
		"y/z.json": {"md", ""},
	} {
		path := filepath.Join(t.TempDir(), name)
		arguments := []string{"3f9a1c", "-o", path}
		if tt.arguments != "" {
			arguments = append(arguments, "--format", tt.arguments)
		}
		_, _, err := conversationsOf(t, "export", answers, arguments...)
		if tt.want == "" {
			kittest.WantTalk(t, "", "writing the conversation", "", err)
			continue
		}
		text, unread := os.ReadFile(path)
		if err != nil || unread != nil || !strings.Contains(string(text), tt.want) {
			t.Errorf("%s: %v, %v: %s", name, err, unread, text)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	_, _, err := conversationsOf(t, "export", answers, "3f9a1c", "--format", "pdf")
	kittest.WantTalk(t, "", "give one of md, json", "", err)
}

func TestConversations_Delete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		arguments []string
		out, err  string
	}{
		"two":               {[]string{"3f9a1c", "770011"}, "3f9a1c is deleted.\n770011 is deleted.\n", ""},
		"an unknown one":    {[]string{"000000"}, "", "Not /api/v1/conversations/000000"},
		"a path":            {[]string{"../3f9a1c"}, "", "at least 6 of the digits"},
		"none at all":       {[]string{"3f9a1c", ""}, "", "at least 6 of the digits"},
		"too few digits":    {[]string{"3f9"}, "", "at least 6 of the digits"},
		"for a terminal":    {[]string{"\x1b[2J"}, "", `"\x1b[2J" can't be`},
		"all and old":       {[]string{"--all", "--older-than", "14d", "-y"}, "", "or else give --all or --older-than AGE"},
		"of no age":         {[]string{"--older-than", "", "-y"}, "", "such as 30d"},
		"of a great age":    {[]string{"--older-than", "36499w", "-y"}, "", "is an age such as"},
		"all":               {[]string{"--all", "--yes"}, "3 conversations deleted.\n", ""},
		"all, unasked":      {[]string{"--all"}, "", "--yes"},
		"old ones":          {[]string{"--older-than", "2w", "-y"}, "3 conversations deleted.\n", ""},
		"of a wrong age":    {[]string{"--older-than", "soon", "-y"}, "", "such as 30d"},
		"of a negative age": {[]string{"--older-than", "-1h", "-y"}, "", "such as 30d"},
		"nothing":           {nil, "", "--older-than"},
		"one and all":       {[]string{"3f9a1c", "--all"}, "", "--older-than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := conversationsOf(t, "rm", map[string]string{
				"DELETE /api/v1/conversations/3f9a1c": `{"deleted":1}`, "DELETE /api/v1/conversations/770011": `{"deleted":1}`,
				"DELETE /api/v1/conversations": `{"deleted":3}`,
			}, tt.arguments...)
			kittest.WantTalk(t, tt.out, tt.err, out, err)
		})
	}
}

func TestConversations_Edit(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"PATCH /api/v1/conversations/3f9a1c22ab": strings.Replace(storedConversation, `"title":"Why\u001b[31m?"`, `"title":"New","pinned":true`, 1) + "}"}
	out, _, err := conversationsOf(t, "edit", answers, "3f9a1c22ab", "--title", "New", "--pinned")
	if err != nil || !strings.Contains(out, "New (pinned)") {
		t.Errorf("%v: %s", err, out)
	}
}
