package api

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestUnknownPath_SaysWhatTheBaseURLShouldBe(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const (
		openAI    = `{"error":{"message":"`
		anthropic = `{"type":"error","error":{"type":"not_found_error"`
		native    = `{"error":{"type":"invalid_request"`
		missing   = "must end in /v1"
		tooMuch   = "must not have the /v1 at its end"
	)
	for path, want := range map[string][2]string{
		"/":                        {openAI, "a base URL that ends in /v1"},
		"/models":                  {openAI, missing},
		"/chat/completions":        {openAI, missing},
		"/messages":                {anthropic, missing},
		"/messages/count_tokens":   {anthropic, missing},
		"/v1/v1/messages/nope":     {anthropic, "(POST /v1/v1/messages/nope)"},
		"/openai/v1/completions/":  {openAI, " /v1/completions: check"},
		"/v1/completions/messages": {openAI, " /v1/messages: check"},
		"/api/v1/v1/models/load":   {native, " /api/v1/models/load: check"},
		"/api/v0/chat":             {native, " /api/v1/chat: check"},
		"/v1/api/v1/chat":          {openAI, tooMuch},
		"/v1/nope":                 {openAI, "(POST /v1/nope)"},
		"/v1/messages/nope":        {anthropic, "(POST /v1/messages/nope)"},
		"/api/nope":                {native, "(POST /api/nope)"},
		"/favicon.ico":             {openAI, "The API is below /v1/ and /api/."},
		"/chat/completions/before": {openAI, "The API is below /v1/ and /api/."},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			got := s.do("POST", path, `{}`)
			if got.status != 404 || !strings.HasPrefix(got.body, want[0]) || !strings.Contains(got.body, want[1]) {
				t.Errorf("%d %s, want %v", got.status, got.body, want)
			}
		})
	}
	if got := s.do("HEAD", "/", ""); got.status != 404 || got.body != "" {
		t.Errorf("HEAD: %d %s", got.status, got.body)
	}
}

// TestFamilies: a site serves no other family than it is told to, whatever the path is asked with.
func TestFamilies(t *testing.T) {
	t.Parallel()
	for family, served := range map[endpoint.Family][]string{
		endpoint.FamilyNative:    {"/api/v1/models", "/lmstudio-greeting"},
		endpoint.FamilyV0:        {"/api/v0/models"},
		endpoint.FamilyOpenAI:    {"/v1/models"},
		endpoint.FamilyAnthropic: {"/v1/models anthropic"},
		endpoint.FamilyOllama:    {"/api/tags", "/api/version"},
	} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Families = []endpoint.Family{family} })
			for _, path := range []string{
				"/api/v1/models", "/api/v0/models", "/v1/models", "/v1/models anthropic", "/lmstudio-greeting", "/api/v1/settings",
				"/api/v1/health", "/v1/messages/nope", "/api/tags", "/api/version",
			} {
				var header []string
				path, isAnthropic := strings.CutSuffix(path, " anthropic")
				if isAnthropic {
					header = []string{"Anthropic-Version", "2023-06-01"}
				}
				want := 404
				for _, p := range served {
					if name, ok := strings.CutSuffix(p, " anthropic"); name == path && ok == isAnthropic {
						want = 200
					}
				}
				if path == "/api/v1/health" || path == "/api/v1/settings" && family == endpoint.FamilyNative {
					want = 200
				}
				got := s.do("GET", path, "", header...)
				if got.status != want {
					t.Errorf("%s %v: %d %s, want %d", path, header, got.status, got.body, want)
				}
				if got.status == 404 && family != endpoint.FamilyAnthropic && !strings.Contains(got.body, "doesn't serve the API family") {
					t.Errorf("%s: %s", path, got.body)
				}
			}
		})
	}
}
