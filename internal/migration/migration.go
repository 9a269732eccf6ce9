// Package migration reads how other programs that run models are set up, and says the same in the words of a Caddyfile: Ollama,
// LM Studio and llama-swap. It changes nothing of theirs. What has no equivalent becomes a note.
package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Config is what was found, in our words.
type Config struct {
	ModelsDirs  []string   // folders whose models are used where they are
	Links       []Link     // files that have to be linked into the models folder
	Options     [][]string // options of lm, each with its arguments
	SandboxRead []string   // files that engines need besides models
	Models      []Model
	Presets     []Preset
	Port        int      // where the other program listens
	NeedsToken  bool     // whether the other program asks for an API key
	Notes       []string // what has no equivalent, and what to do about it
}

// Link is a file that becomes <publisher>/<repo>/<its name> in the models folder.
type Link struct {
	File, Publisher, Repo string
	IsProjector           bool // of the model in the same folder
}

// Model is the settings of a model.
type Model struct {
	Key     string
	Aliases []string
	Options [][]string
}

// Preset is a set of request defaults that clients choose by name.
type Preset struct {
	Name   string
	Fields [][]string
}

// Found is a model that lmcaddy finds in a folder.
type Found struct {
	Key  string
	Path string // of its first file
	Err  error  // why it can't be used
}

// List returns the models in a folder.
type List func(ctx context.Context, folder string) ([]Found, error)

func (c *Config) note(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if !slices.Contains(c.Notes, note) {
		c.Notes = append(c.Notes, note)
	}
}

// set adds an option, unless it has no argument.
func (m *Model) set(name string, args ...string) {
	m.Options = append(m.Options, append([]string{name}, args...))
}

// set adds a field with strings. The Caddyfile takes what is JSON as such, so a string that looks like JSON is written as JSON.
func (p *Preset) set(name string, values ...string) {
	words := []string{name}
	for _, value := range values {
		if json.Valid([]byte(value)) && name != "system_prompt" {
			encoded, _ := json.Marshal(value) // a string can be encoded
			value = string(encoded)
		}
		words = append(words, value)
	}
	p.Fields = append(p.Fields, words)
}

// servedOn notes that the other program served other machines.
func (c *Config) servedOn(program, host string) {
	if host != "" && host != "127.0.0.1" && host != "localhost" && host != "::1" {
		c.note("%s served on %s, for other machines. The Caddyfile serves this machine alone: to change that, "+
			"put lm_auth before lm_api, and remove the line with bind", program, host)
	}
}

// args adds arguments of the engine.
func (m *Model) args(args ...string) {
	if len(args) == 0 {
		return
	}
	for i, o := range m.Options {
		if o[0] == "args" {
			m.Options[i] = append(o, args...)
			return
		}
	}
	m.set("args", args...)
}

// caddyfileWriter writes a Caddyfile.
type caddyfileWriter struct {
	strings.Builder
	depth int
}

func (w *caddyfileWriter) words(all []string) {
	w.WriteString(strings.Repeat("\t", w.depth))
	for i, word := range all {
		if i > 0 {
			w.WriteByte(' ')
		}
		w.WriteString(quoted(word))
	}
}

func (w *caddyfileWriter) line(all ...string) {
	w.words(all)
	w.WriteByte('\n')
}

// block writes a block, and in it what a function writes.
func (w *caddyfileWriter) block(what func(), head ...string) {
	w.words(head)
	if len(head) > 0 {
		w.WriteByte(' ')
	}
	w.WriteString("{\n")
	w.depth++
	what()
	w.depth--
	w.WriteString(strings.Repeat("\t", w.depth) + "}\n")
}

// Caddyfile returns the configuration.
func (c *Config) Caddyfile(from string) string {
	w := new(caddyfileWriter)
	fmt.Fprintf(w, "# Made by \"lmcaddy import --from %s\". \"lmcaddy run\" serves with it.\n", from)
	w.block(func() {
		w.line("grace_period", "15s")
		w.block(func() {
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
					if len(m.Aliases) > 0 {
						w.line(append([]string{"alias"}, m.Aliases...)...)
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
		}, "lm")
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

// Finish makes the configuration one that is valid: no two models have the same alias, no model has an option twice, and each word
// can be written.
func (c *Config) Finish() {
	c.dropUnwritable()
	c.join()
	owner := map[string]string{}
	for i := range c.Models {
		m := &c.Models[i]
		m.Aliases = slices.DeleteFunc(m.Aliases, func(alias string) bool {
			key, taken := owner[strings.ToLower(alias)]
			if !taken {
				owner[strings.ToLower(alias)] = m.Key
			} else if key != m.Key {
				c.note("%s is a name of two models, and stays that of %s", alias, key)
			}
			return taken || strings.EqualFold(alias, m.Key)
		})
		for j, alias := range m.Aliases {
			m.Aliases[j] = literal(alias)
		}
	}
}

// literal is an alias that stands for itself alone, although it has characters of a pattern.
func literal(alias string) string {
	if !strings.ContainsAny(alias, "*?[") {
		return alias
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(alias)
}

// Rename gives a model another key; an empty one removes it. A model that drafts for others is no longer theirs, then.
func (c *Config) Rename(from, to string) {
	for i := range c.Models {
		m := &c.Models[i]
		if m.Key == from {
			m.Key = to
		}
		m.Options = slices.DeleteFunc(m.Options, func(o []string) bool {
			if o[0] != "draft_model" || o[1] != from {
				return false
			}
			o[1] = to
			return to == ""
		})
	}
	c.Models = slices.DeleteFunc(c.Models, func(m Model) bool { return m.Key == "" })
}

// join makes one model of those with the same key. The options of the first count.
func (c *Config) join() {
	var all []Model
	for _, m := range c.Models {
		i := slices.IndexFunc(all, func(a Model) bool { return a.Key == m.Key })
		if i < 0 {
			all = append(all, m)
			continue
		}
		for _, o := range m.Options {
			same := slices.IndexFunc(all[i].Options, func(other []string) bool { return other[0] == o[0] })
			switch {
			case same < 0:
				all[i].Options = append(all[i].Options, o)
			case !slices.Equal(all[i].Options[same], o):
				c.note("%s: it is the same model as %s, whose setting counts instead of: %s", first(m.Aliases, m.Key),
					first(all[i].Aliases, m.Key), clip(strings.Join(o, " ")))
			}
		}
		all[i].Aliases = append(all[i].Aliases, m.Aliases...)
	}
	c.Models = all
}

// first is the first of some names, or another if there are none.
func first(names []string, other string) string {
	if len(names) == 0 {
		return other
	}
	return names[0]
}
