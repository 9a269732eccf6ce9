package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// The transports of [Config.Type].
const (
	typeHTTP = "http"
	typeSSE  = "sse"
)

const maxFile = 4 << 20 // far more than any mcp.json has

// Config is an entry of mcp.json: a program that speaks MCP on its standard input and output, or the URL of a server.
type Config struct {
	Label string // the entry's name, as written

	Command string // a program's path, relative to Dir, or its name in PATH
	Args    []string
	Env     map[string]string // is added to the program's environment
	Dir     string            // where the program runs; the folder of mcp.json by default

	URL     string
	Headers map[string]string // are sent with each request
	Type    string            // "http" or "sse"; if empty, http is tried before sse

	Approval bool // calls of its tools have to be approved

	Err error // says what is wrong with the entry. The other fields aren't to be used then.
}

// ID is the entry's name in kebab case, which identifies it as well as its label does.
func (c Config) ID() string { return kebab(c.Label) }

// Read returns the entries of mcp.json, sorted by label; none if there is no file. What is wrong with a single entry is in its Err.
func Read(path string) ([]Config, error) {
	content, err := boundedfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading mcp.json: %w", err)
	}
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	// Editors on Windows begin a file with a byte order mark.
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("reading %s: it must look like {\"mcpServers\": {\"name\": {...}}}: %w", path, err)
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("reading mcp.json: %w", err)
	}
	var all []Config
	for _, label := range slices.Sorted(maps.Keys(file.Servers)) {
		config, err := readEntry(file.Servers[label], folder)
		if err != nil {
			config = Config{Err: fmt.Errorf("the entry %q of mcp.json: %w", label, err)}
		}
		config.Label = label
		all = append(all, config)
	}
	return all, nil
}

// readEntry reads one entry. Members that it doesn't know are ignored, since files of other programs are copied here.
func readEntry(raw json.RawMessage, folder string) (Config, error) {
	var entry struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		Dir     string            `json:"cwd"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
		Type    string            `json:"type"`

		Approval bool `json:"approval"`
	}
	if !bytes.HasPrefix(raw, []byte("{")) {
		return Config{}, errors.New("it must be an object")
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		// The value isn't named: it may be a secret.
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Config{}, fmt.Errorf("%q must %s", wrong.Field, kindOf(wrong))
		}
		return Config{}, err
	}
	c := Config{Dir: folder, Command: entry.Command, Args: entry.Args, Env: entry.Env, URL: entry.URL, Approval: entry.Approval}
	if entry.Dir != "" {
		c.Dir = entry.Dir
		if !filepath.IsAbs(c.Dir) {
			c.Dir = filepath.Join(folder, c.Dir)
		}
	}
	kind, err := readType(entry.Type)
	switch {
	case err != nil:
		return Config{}, err
	case c.Command == "" && c.URL == "":
		return Config{}, errors.New("it needs a command or a url")
	case c.Command != "" && c.URL != "":
		return Config{}, errors.New("it has a command and a url: leave one of them out")
	case c.Command != "" && kind != "" && kind != "stdio", c.URL != "" && kind == "stdio":
		has := map[bool]string{true: "url", false: "command"}[c.URL != ""]
		return Config{}, fmt.Errorf("type %q is not for a server with a %s", entry.Type, has)
	case c.Command != "":
		return c, checkEnv(c.Env)
	}
	c.Type = kind
	if _, err := parseURL(c.URL); err != nil {
		return Config{}, err
	}
	c.Headers, err = configHeaders(entry.Headers)
	return c, err
}

func kindOf(wrong *json.UnmarshalTypeError) string {
	switch kind := wrong.Type.Kind(); {
	case kind == reflect.Slice:
		return "be an array of strings"
	case kind == reflect.Map:
		return "be an object with strings"
	case slices.Contains([]string{"args", "env", "headers"}, wrong.Field):
		return "have strings only"
	default:
		return "be a string"
	}
}

// readType returns "http", "sse", "stdio" or nothing. Other programs spell streamable HTTP in several ways.
func readType(name string) (string, error) {
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name)) {
	case "":
		return "", nil
	case "http", "streamablehttp":
		return typeHTTP, nil
	case "sse":
		return typeSSE, nil
	case "stdio":
		return "stdio", nil
	default:
		return "", fmt.Errorf("type %q is not known: it may be http or sse", name)
	}
}

func checkEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("env has a variable %q that can't be set", name)
		}
	}
	return nil
}

// parseURL parses a server's URL. Its errors don't show the URL, which may hold a secret.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("its url must look like https://host/path")
	}
	return u, nil
}

// kebab writes a name in lower case with hyphens: "My Server" and "myServer" become "my-server".
func kebab(name string) string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			last = '-'
			continue
		}
		if b.Len() > 0 && (last == '-' || unicode.IsUpper(r) && unicode.IsLower(last)) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}
