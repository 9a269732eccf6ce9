package command

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// clientBlock matches a configuration of another program.
var clientBlock = regexp.MustCompile("(?s)```(json|yaml|toml)\n(.*?)```")

// baseURLs are what the programs of the recipes may be given: the base of OpenAI's API, that of Anthropic's, and an endpoint.
var baseURLs = []string{"http://127.0.0.1:1234", "http://127.0.0.1:1234/v1", "http://127.0.0.1:1234/v1/chat/completions"}

// TestRecipes_ConfigurationsOfClients: they can be parsed, and lead to this server.
func TestRecipes_ConfigurationsOfClients(t *testing.T) {
	t.Parallel()
	parsers := map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": yaml.Unmarshal, "toml": toml.Unmarshal}
	seen := map[string]int{}
	for file, text := range documents(t) {
		for _, block := range clientBlock.FindAllStringSubmatch(text, -1) {
			var parsed any
			if err := parsers[block[1]]([]byte(block[2]), &parsed); err != nil {
				t.Errorf("%s: %v:\n%s", file, err, block[2])
			}
			if filepath.Base(filepath.Dir(file)) != "recipes" {
				continue
			}
			seen[block[1]]++
			found := false
			for _, s := range stringsIn(parsed) {
				if strings.HasPrefix(s, "http") && !strings.HasPrefix(s, "https://opencode.ai/") {
					if found = true; !slices.Contains(baseURLs, s) {
						t.Errorf("%s: %s leads nowhere", file, s)
					}
				}
			}
			if !found {
				t.Errorf("%s: it names no server:\n%s", file, block[2])
			}
		}
	}
	for kind := range parsers {
		if seen[kind] == 0 {
			t.Errorf("no recipe has a block of %s", kind)
		}
	}
}

// stringsIn returns all strings in a parsed value.
func stringsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			all = append(all, stringsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			all = append(all, stringsIn(one)...)
		}
	}
	return all
}

// quotedMessage matches a heading that is a message.
var quotedMessage = regexp.MustCompile("(?m)^### `(.+)`$")

// notOurs are messages of clients, of engines and of the system, which people look for all the same.
var notOurs = []string{
	"certificate signed by unknown authority", "tlsv1 alert internal error", "Client sent an HTTP request to an HTTPS server.", "bind: permission denied",
	"unrecognized directive: …",
}

// between is what a message may have in the code where the page has "…": the rest of a line, or of two that belong together.
const between = `[^\n]{0,160}?(?:\n[^\n]{0,80}?)?`

// TestTroubleshooting_MessagesExist: each message on the page is in the code as a whole, except for what varies.
func TestTroubleshooting_MessagesExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(sources(t), `\"`, `"`)
	messages := quotedMessage.FindAllStringSubmatch(string(page), -1)
	if len(messages) < 40 {
		t.Errorf("only %d messages were found", len(messages))
	}
	for _, m := range messages {
		if slices.Contains(notOurs, m[1]) {
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(m[1], "…") {
			parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(part)), "llama-server", "(llama-server|%s)"))
		}
		if !regexp.MustCompile(strings.Join(parts, between)).MatchString(code) {
			t.Errorf("no message in the code is %q", m[1])
		}
	}
}

// sources is all of the program's code, without its tests.
func sources(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"api", "caddymodule", "catalog", "internal", "node", "supervisor", "translate", "store"} {
		err := filepath.WalkDir("../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
