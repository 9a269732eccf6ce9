package migration

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// placeholder matches what Caddy replaces in a Caddyfile, in quotes as well: {$NAME} before it reads the words, the others later.
var placeholder = regexp.MustCompile(`\{(\$|env\.|file\.|system\.|time\.)`)

// isWritable reports whether a Caddyfile can have a word: Caddy has no escapes but that of a double quote.
func isWritable(word string) bool {
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	closesQuotes := strings.Contains(word, "`") && (strings.Contains(word, `\"`) || strings.HasSuffix(word, `\`))
	return !placeholder.MatchString(word) && !strings.ContainsFunc(word, isControl) && !closesQuotes
}

func isUnwritable(word string) bool { return !isWritable(word) }

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

// dropUnwritable removes what has a word that a Caddyfile can't have, and notes that.
func (c *Config) dropUnwritable() {
	const why = "has placeholders or control characters, which a Caddyfile can't have as text"
	c.ModelsDirs = slices.DeleteFunc(c.ModelsDirs, func(dir string) bool {
		if isWritable(dir) {
			return false
		}
		c.note("the folder %q %s: link it to another name, and put \"models_dir\" with that into the Caddyfile", dir, why)
		return true
	})
	c.SandboxRead = slices.DeleteFunc(c.SandboxRead, func(file string) bool {
		if isUnwritable(file) {
			c.note("the file %q %s", file, why)
		}
		return isUnwritable(file)
	})
	lines := func(of string, all [][]string) [][]string {
		return slices.DeleteFunc(all, func(words []string) bool {
			if !slices.ContainsFunc(words, isUnwritable) {
				return false
			}
			c.note("%s: the setting %s %s", of, words[0], why)
			return true
		})
	}
	c.Models = slices.DeleteFunc(c.Models, func(m Model) bool {
		if isUnwritable(m.Key) {
			c.note("%q: its name %s", m.Key, why)
		}
		return isUnwritable(m.Key)
	})
	for i := range c.Models {
		m := &c.Models[i]
		m.Aliases = slices.DeleteFunc(m.Aliases, func(alias string) bool {
			if isUnwritable(alias) {
				c.note("%s: its name %q %s", m.Key, alias, why)
			}
			return isUnwritable(alias) || strings.TrimSpace(alias) == "" || strings.HasSuffix(alias, `\`)
		})
		m.Options = lines(m.Key, m.Options)
	}
	c.Presets = slices.DeleteFunc(c.Presets, func(p Preset) bool {
		if isUnwritable(p.Name) {
			c.note("the preset %q: its name %s", p.Name, why)
		}
		return isUnwritable(p.Name)
	})
	for i := range c.Presets {
		c.Presets[i].Fields = lines("the preset "+c.Presets[i].Name, c.Presets[i].Fields)
	}
}
