package migration

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
)

type server struct {
	program                       string
	model, projector, draft, repo string
	context, parallel             int
	isUnified                     bool // all slots share the context
	rest, dropped                 []string
}

// These flags are lmcaddy's own business: where the engine listens, what it shows, and what it is called.
var (
	droppedWords = []string{
		"--metrics", "--slots", "--no-webui", "--webui", "--ui", "--no-ui", "--props", "--no-slots", "--jinja", "--verbose", "-v",
		"--log-disable", "--offline",
	}
	// droppedPairs are those with a value, and what to write into the Caddyfile instead; empty: nothing.
	droppedPairs = map[string]string{ //nolint:gosec // names of options, not secrets
		"--host": "", "--port": "", "-a": "", "--alias": "", "--path": "", "--log-file": "", "--slot-save-path": "", "-to": "",
		"--timeout": "", "--threads-http": "", "--api-prefix": "",
		"-hff":      "the key of the model with that quantization (KEY@Q8_0)",
		"--hf-file": "the key of the model with that quantization (KEY@Q8_0)",
		"--api-key": "lm_auth in the site", "--api-key-file": "lm_auth in the site",
		"--ssl-key-file": "https in the site's address", "--ssl-cert-file": "https in the site's address",
		"-hft": "the option hub with its token", "--hf-token": "the option hub with its token",
		"--sleep-idle-seconds": "the option ttl of the model",
	}
	// fileFlags are followed by a file, which the engine's sandbox has to let it read.
	fileFlags = []string{
		"--lora", "--control-vector", "--chat-template-file", "--grammar-file", "-jf", "--json-schema-file", "-lcs",
		"--lookup-cache-static", "-mv", "--model-vocoder",
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
	var flags []string // each with its value as the next word
	for _, word := range words[1:] {
		if flag, value, hasValue := strings.Cut(word, "="); hasValue && strings.HasPrefix(flag, "--") {
			flags = append(flags, flag, value)
		} else {
			flags = append(flags, word)
		}
	}
	for len(flags) > 0 {
		flag := flags[0]
		flags = flags[1:]
		take := func() (value string) {
			if len(flags) > 0 {
				value, flags = flags[0], flags[1:]
			}
			return value
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
		case "-c", "--ctx-size":
			s.context, _ = strconv.Atoi(take()) // 0 is the model's own length, which is the default here, too
		case "-np", "--parallel":
			s.parallel, _ = strconv.Atoi(take()) // a wrong number is the default
		case "-kvu", "--kv-unified":
			s.isUnified = true
		default:
			if _, isDropped := droppedPairs[flag]; isDropped {
				take()
				s.dropped = append(s.dropped, flag)
			} else if !slices.Contains(droppedWords, flag) {
				s.rest = append(s.rest, flag)
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
		if strings.Contains(word, "${") {
			c.note("%s: what stands for the macro in the argument %s isn't known: correct it in the Caddyfile", id, clip(word))
		}
		if i > 0 && slices.Contains(fileFlags, s.rest[i-1]) {
			s.rest[i] = c.readable(folder, word)
		}
	}
	m.args(s.rest...)
	for _, flag := range s.dropped {
		if instead := droppedPairs[flag]; instead != "" {
			c.note("%s: instead of %s, write %s", id, flag, instead)
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

// withoutComments drops the lines of a command that are comments, and joins lines that end with a backslash.
func withoutComments(command string) string {
	var b strings.Builder
	for line := range strings.Lines(command) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "#") {
			b.WriteString(strings.TrimSuffix(trimmed, `\`) + "\n")
		}
	}
	return b.String()
}

// windowsPaths doubles the backslashes of paths, which a shell would take for escapes; \" stays an escaped quote.
var windowsPaths = strings.NewReplacer(`\"`, `\"`, `\`, `\\`)

// commandWords splits a command into words, as llama-swap does on an operating system.
func commandWords(command, system string) ([]string, error) {
	command = withoutComments(command)
	if system == "windows" {
		command = windowsPaths.Replace(command)
	}
	return split(command)
}

func split(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	var quote rune
	escaped := false
	for _, r := range command {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' && r != '$' && r != '`' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote isn't closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
