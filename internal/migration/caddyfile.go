package migration

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Caddyfile returns the configuration. What has a word that no Caddyfile can have is left out, and noted.
func (c *Config) Caddyfile(from string) string {
	w := &caddyfileWriter{config: c}
	fmt.Fprintf(w, "# Made by \"lmcaddy import --from %s\". \"lmcaddy run\" serves with it.\n", from)
	w.block(func() {
		w.line("grace_period", "15s")
		w.block(c.write(w), "lm")
	})
	w.WriteByte('\n')
	w.block(func() {
		w.WriteString("\tbind 127.0.0.1 # Only this machine can connect. Before other machines may, put lm_auth before lm_api.\n")
		if c.NeedsToken {
			w.line("lm_auth")
		}
		w.line("lm_api")
	}, "http://:"+strconv.Itoa(c.Port))
	return w.String()
}

// write returns a function that writes the block lm.
func (c *Config) write(w *caddyfileWriter) func() {
	return func() {
		for _, dir := range c.ModelsDirs {
			w.line("models_dir", dir)
		}
		w.line("list_models", "all") // as the other programs do
		for _, o := range c.Options {
			w.line(o...)
		}
		if len(c.SandboxRead) > 0 {
			w.block(func() { w.line(append([]string{"sandbox_read"}, c.SandboxRead...)...) }, "engine", "llama_server")
		}
		for _, m := range slices.SortedFunc(slices.Values(c.Models), func(a, b Model) int { return cmp.Compare(a.Key, b.Key) }) {
			if len(m.Aliases)+len(m.Options) == 0 {
				continue
			}
			w.block(func() {
				aliases := []string{"alias"}
				for _, alias := range m.Aliases {
					if w.refuses(alias) {
						continue
					}
					if strings.ContainsAny(alias, "*?[") { // it stands for itself alone, and is no pattern
						alias = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(alias)
					}
					aliases = append(aliases, alias)
				}
				if len(aliases) > 1 {
					w.line(aliases...)
				}
				for _, o := range m.Options {
					w.line(o...)
				}
			}, "model", m.Key)
		}
		for _, p := range c.Presets {
			w.block(func() {
				for _, f := range p.Fields {
					w.line(f...)
				}
			}, "preset", p.Name)
		}
	}
}

type caddyfileWriter struct {
	strings.Builder
	config *Config
	depth  int
}

func (w *caddyfileWriter) line(words ...string) {
	if !w.refuses(words...) {
		w.words(words)
		w.WriteByte('\n')
	}
}

func (w *caddyfileWriter) block(what func(), head ...string) {
	if w.refuses(head...) {
		return
	}
	if w.words(head); len(head) > 0 {
		w.WriteByte(' ')
	}
	w.WriteString("{\n")
	w.depth++
	what()
	w.depth--
	w.WriteString(strings.Repeat("\t", w.depth) + "}\n")
}

func (w *caddyfileWriter) words(all []string) {
	quotes := make([]string, len(all))
	for i, word := range all {
		quotes[i] = quoted(word)
	}
	w.WriteString(strings.Repeat("\t", w.depth) + strings.Join(quotes, " "))
}

// placeholder matches what Caddy replaces in a Caddyfile, in quotes as well: {$NAME} before it reads the words, the others later.
var placeholder = regexp.MustCompile(`\{(\$|env\.|file\.|system\.|time\.)`)

// refuses reports whether no Caddyfile can have some words, and notes that: Caddy has no escapes but that of a double quote.
func (w *caddyfileWriter) refuses(words ...string) bool {
	for _, word := range words {
		isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		closesQuotes := strings.Contains(word, "`") && (strings.Contains(word, `\"`) || strings.HasSuffix(word, `\`))
		if placeholder.MatchString(word) || strings.ContainsFunc(word, isControl) || closesQuotes {
			w.config.note("a Caddyfile can't have this as text, because of placeholders or control characters in it: %q",
				clip(strings.Join(words, " ")))
			return true
		}
	}
	return false
}

// quoted writes a word so that a Caddyfile has exactly it. In double quotes, only those are escaped.
func quoted(word string) string {
	isSpecial := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"`{}#\\", r) }
	switch {
	case word != "" && !strings.ContainsFunc(word, isSpecial) && !strings.HasPrefix(word, "<<"):
		return word
	case !strings.Contains(word, "`"):
		return "`" + word + "`"
	default:
		return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
	}
}
