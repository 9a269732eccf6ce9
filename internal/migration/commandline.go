package migration

import (
	"errors"
	"strings"
)

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

// split splits a command into words, as a shell does.
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

// program names a command without its arguments, which may have secrets in them.
func program(words []string) string {
	switch {
	case len(words) == 0:
		return "it has none"
	case len(words) > 1 && !strings.HasPrefix(words[1], "-") && (words[0] == "docker" || words[0] == "podman"):
		return words[0] + " " + words[1]
	}
	return words[0]
}
