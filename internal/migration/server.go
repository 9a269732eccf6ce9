package migration

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// server is a command line of llama-server.
type server struct {
	program                                 string
	model, projector, draft, repo, repoFile string
	context, parallel                       int
	isUnified                               bool // all slots share the context
	rest                                    []string
	dropped                                 []string
}

// These flags are lmcaddy's own business: where the engine listens, what it shows, and what it is called.
var (
	droppedWords = []string{
		"--metrics", "--slots", "--no-webui", "--webui", "--ui", "--no-ui", "--props", "--no-slots", "--jinja", "--verbose", "-v",
		"--log-disable", "--offline",
	}
	droppedPairs = []string{
		"--host", "--port", "--api-key", "--api-key-file", "-a", "--alias", "--path", "--ssl-key-file", "--ssl-cert-file", "--log-file",
		"--slot-save-path", "-to", "--timeout", "--threads-http", "--api-prefix", "-hft", "--hf-token",
		"--sleep-idle-seconds",
	}
	// fileFlags are followed by a file, which the engine's sandbox has to let it read.
	fileFlags = []string{
		"--lora", "--control-vector", "--chat-template-file", "--grammar-file", "-jf", "--json-schema-file", "-lcs",
		"--lookup-cache-static",
		"-mv", "--model-vocoder",
	}
)

// parseServer reads a command line. It reports false if that isn't one of llama-server alone.
func parseServer(words []string) (*server, bool) {
	if len(words) == 0 {
		return nil, false
	}
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe")
	if !strings.HasPrefix(name, "llama-server") && !strings.HasSuffix(name, "llama-server") {
		return nil, false
	}
	s := &server{program: words[0]}
	words = words[1:]
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		flag, value, hasValue := strings.Cut(word, "=")
		if !hasValue || !strings.HasPrefix(flag, "--") {
			flag, hasValue = word, false
		}
		take := func() string {
			if hasValue {
				return value
			}
			if len(words) == 0 {
				return ""
			}
			next := words[0]
			words = words[1:]
			return next
		}
		switch flag {
		case "-m", "--model":
			s.model = take()
		case "-mm", "--mmproj":
			s.projector = take()
		case "-md", "--model-draft", "--spec-draft-model":
			s.draft = take()
		case "-hf", "-hfr", "--hf-repo":
			s.repo = take()
		case "-hff", "--hf-file":
			s.repoFile = take()
		case "-c", "--ctx-size":
			s.context, _ = strconv.Atoi(take()) // 0 is the model's own length, which is the default here, too
		case "-np", "--parallel":
			s.parallel, _ = strconv.Atoi(take()) // a wrong number is the default
		case "-kvu", "--kv-unified":
			s.isUnified = true
		default:
			switch {
			case slices.Contains(droppedPairs, flag):
				take()
				s.dropped = append(s.dropped, flag)
			case slices.Contains(droppedWords, flag):
			default:
				s.rest = append(s.rest, word)
			}
		}
	}
	return s, s.model != "" || s.repo != ""
}

// settings puts the flags into a model's block. llama-server divides the context among its slots, unless they share it; lmcaddy's
// context_length is that of one request. Files are below a folder, unless their paths are absolute.
func (s *server) settings(c *Config, id, folder string, m *Model) {
	if s.context > 0 {
		each := s.context
		if s.parallel > 1 && !s.isUnified {
			each /= s.parallel
		}
		m.set("context_length", strconv.Itoa(each))
	}
	if s.parallel > 0 {
		m.set("parallel", strconv.Itoa(s.parallel))
	}
	for i, word := range s.rest {
		flag, value, isOne := strings.Cut(word, "=")
		if strings.Contains(word, "${") {
			c.note("%s: what stands for the macro in the argument %s isn't known: correct it in the Caddyfile", id, clip(word))
		}
		switch {
		case isOne && slices.Contains(fileFlags, flag):
			s.rest[i] = flag + "=" + c.readable(folder, value)
		case i > 0 && slices.Contains(fileFlags, s.rest[i-1]):
			s.rest[i] = c.readable(folder, word)
		}
	}
	m.args(s.rest...)
	for _, flag := range s.dropped {
		switch {
		case strings.HasPrefix(flag, "--ssl") || strings.HasPrefix(flag, "--api-key"):
			c.note("%s: instead of %s, the site in the Caddyfile has TLS and lm_auth", id, flag)
		case flag == "-hft" || flag == "--hf-token":
			c.note("%s: instead of %s, the option hub of the Caddyfile has the token", id, flag)
		case flag == "--sleep-idle-seconds":
			c.note("%s: instead of %s, the option ttl of the model says when it is unloaded", id, flag)
		}
	}
	if isPath := strings.ContainsAny(s.program, `/\`); isPath {
		c.note("the commands run %s. lmcaddy runs the engine that \"lmcaddy runtime ls\" shows as selected, "+
			"or that of the option path in engine llama_server", s.program)
	}
}

// readable returns the absolute path of a file, or of several with commas between them, which engines have to be able to read.
func (c *Config) readable(folder, files string) string {
	paths := strings.Split(files, ",")
	for i, path := range paths {
		paths[i] = within(folder, path)
		if !slices.Contains(c.SandboxRead, paths[i]) {
			c.SandboxRead = append(c.SandboxRead, paths[i])
		}
	}
	return strings.Join(paths, ",")
}
