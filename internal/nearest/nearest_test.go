package nearest

import (
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	servers := []string{"files", "weather", "Google Drive", "JIRA"}
	models := []string{"lmcaddy/tinychat", "qwen/qwen3-14b", "qwen/qwen3-4b-instruct@q4_k_m", "qwen/qwen3-4b-thinking", "qwen/qwen3-8b", "qwen/qwen3-80b"}
	for _, tt := range []struct {
		name  string
		known []string
		want  string
	}{
		{"filse", servers, "files"},
		{"FILES", servers, "files"},
		{"wether", servers, "weather"},
		{"gogle drive", servers, "Google Drive"},
		{"google-drive", servers, "Google Drive"},
		{"google", servers, "Google Drive"},
		{"jira", servers, "JIRA"},
		{"x", servers, ""},
		{"maths", servers, ""},
		{"", servers, ""},
		{"--temp", []string{"--help", "--temperature"}, "--temperature"},
		{"--ngl", []string{"--ttl"}, ""},
		{"tiny", models, "lmcaddy/tinychat"},
		{"tinychta", models, "lmcaddy/tinychat"},
		{"qwen/qwen3-4b", models, "qwen/qwen3-4b-instruct@q4_k_m, qwen/qwen3-4b-thinking or qwen/qwen3-14b"},
		{"qwen3-4b", models, "qwen/qwen3-4b-instruct@q4_k_m, qwen/qwen3-4b-thinking or qwen/qwen3-14b"},
		{strings.Repeat("é", 1<<20), models, ""},
	} {
		want := tt.want
		if want != "" {
			want = ": did you mean " + want + "?"
		}
		if got := DidYouMean(tt.name, tt.known); got != want {
			t.Errorf("%.20s: %q, want %q", tt.name, got, want)
		}
	}
	if got, want := Listed("qwen3-8b", models), "qwen/qwen3-8b, qwen/qwen3-80b, qwen/qwen3-14b, and 3 more"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
