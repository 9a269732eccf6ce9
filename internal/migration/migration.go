// Package migration reads how other programs that run models are set up, and says the same in the words of a Caddyfile: Ollama,
// LM Studio and llama-swap. It changes nothing of theirs. What has no equivalent becomes a note.
package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// Config is what was found, in our words.
type Config struct {
	ModelsDirs  []string   // folders whose models are used where they are
	Options     [][]string // options of lm, each with its arguments
	SandboxRead []string   // files that engines need besides models
	Models      []Model
	Presets     []Preset
	Port        int      // where the other program listens
	NeedsToken  bool     // whether the other program asks for an API key
	Notes       []string // what has no equivalent, and what to do about it
	Usable      int      // models that can be taken over
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

// NoModelsError says that a folder has no models of the other program.
type NoModelsError struct{ reason string }

func (e *NoModelsError) Error() string { return e.reason }

func (c *Config) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(c.Notes, note) {
		c.Notes = append(c.Notes, note)
	}
}

// instead says what serves in place of settings that have no equivalent.
var instead = map[string]string{
	"concurrencyLimit": "requests wait in a queue (the option queue)", "env": "args --device chooses GPUs",
	"filters.setParams":     "a preset has defaults of requests (the option preset)",
	"filters.setParamsByID": "a preset has defaults of requests (the option preset)",
	"messages":              "clients send examples", "draft": "import it as a model, and name its key in the option draft_model",
}

func (c *Config) lacks(of string, settings []string) {
	if len(settings) == 0 {
		return
	}
	slices.Sort(settings)
	for i, s := range settings {
		if serves := instead[s]; serves != "" {
			settings[i] += " (" + serves + ")"
		}
	}
	c.note("%s: there is no equivalent of %s", of, strings.Join(settings, ", "))
}

// add adds a model. If there is one with its key, it gets the other names, and those options that it hasn't.
func (c *Config) add(m Model) {
	c.Usable++
	i := slices.IndexFunc(c.Models, func(other Model) bool { return other.Key == m.Key })
	if i < 0 {
		i = len(c.Models)
		c.Models = append(c.Models, Model{Key: m.Key})
	}
	to := &c.Models[i]
	for _, alias := range m.Aliases {
		isAlias := func(other string) bool { return strings.EqualFold(other, alias) }
		j := slices.IndexFunc(c.Models, func(other Model) bool { return slices.ContainsFunc(other.Aliases, isAlias) })
		switch {
		case j >= 0 && j != i:
			c.note("%s is a name of two models, and stays that of %s", alias, c.Models[j].Key)
		case j < 0 && strings.TrimSpace(alias) != "" && !strings.HasSuffix(alias, `\`) && !strings.EqualFold(alias, m.Key):
			to.Aliases = append(to.Aliases, alias)
		}
	}
	for _, o := range m.Options {
		j := slices.IndexFunc(to.Options, func(other []string) bool { return other[0] == o[0] })
		switch {
		case j < 0:
			to.Options = append(to.Options, o)
		case !slices.Equal(to.Options[j], o):
			c.note("%s: it has two names with different settings, of which the first counts, and not: %s", m.Key,
				clip(strings.Join(o, " ")))
		}
	}
}

func (m *Model) set(name string, args ...string) {
	m.Options = append(m.Options, append([]string{name}, args...))
}

func (m *Model) args(args ...string) {
	i := slices.IndexFunc(m.Options, func(o []string) bool { return o[0] == "args" })
	switch {
	case i >= 0:
		m.Options[i] = append(m.Options[i], args...)
	case len(args) > 0:
		m.set("args", args...)
	}
}

// preset adds a field to the preset of a model. The Caddyfile takes what is JSON as such, so a string that looks like JSON is written as JSON.
func (c *Config) preset(m *Model, of, name string, values ...string) {
	i := slices.IndexFunc(c.Presets, func(p Preset) bool { return p.Name == of })
	if i < 0 {
		i = len(c.Presets)
		c.Presets = append(c.Presets, Preset{Name: of})
		c.note(`%s: its system prompt and stop strings are in the preset of that name`, of)
	}
	words := []string{name}
	for _, value := range values {
		if name != "system_prompt" && json.Valid([]byte(value)) {
			encoded, _ := json.Marshal(value) // a string can be encoded
			value = string(encoded)
		}
		words = append(words, value)
	}
	c.Presets[i].Fields = append(c.Presets[i].Fields, words)
	if isPreset := func(o []string) bool { return o[0] == "preset" }; !slices.ContainsFunc(m.Options, isPreset) {
		m.set("preset", of)
	}
}

func (c *Config) servedOn(program, host string) {
	if host != "" && host != "127.0.0.1" && host != "localhost" && host != "::1" {
		c.note("%s served on %s, for other machines. The Caddyfile serves this machine alone: to change that, "+
			"put lm_auth before lm_api, and remove the line with bind", program, host)
	}
}

// maxFile bounds a file of another program's settings, in bytes.
const maxFile = 1 << 20

// read reads a file in JSON or YAML, by its name. It reports false if there is none; one that can't be read is noted.
func (c *Config) read(path string, to any) bool {
	text, err := boundedfile.Read(path, maxFile)
	switch {
	case err != nil:
	case filepath.Ext(path) == ".yaml":
		err = yaml.Unmarshal(text, to)
	default:
		err = json.Unmarshal([]byte(strings.TrimPrefix(string(text), "\ufeff")), to)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.note("%s can't be read, and what it says is left out: %v", path, err)
	}
	return err == nil
}

// texts returns the texts of a list, or of a single value. What is empty is left out.
func texts(value any) (all []string) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, each := range list {
		switch v := each.(type) {
		case string:
			if v != "" {
				all = append(all, v)
			}
		case float64:
			all = append(all, strconv.FormatFloat(v, 'f', -1, 64))
		case int, bool:
			all = append(all, fmt.Sprint(v))
		}
	}
	return all
}

// numbers matches what is an argument of the engine.
var numbers = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,20})?$`)

// number returns a value that is a number; empty: it is none.
func number(value any) string {
	if all := texts(value); len(all) == 1 && numbers.MatchString(all[0]) {
		return all[0]
	}
	return ""
}

func isWhole(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0
}

// maxSeconds is more than any model stays loaded, and few enough for a [time.Duration].
const maxSeconds = 100 * 365 * 24 * 60 * 60

// seconds writes a duration as Caddyfiles have it.
func seconds(n float64) string {
	switch whole := int(min(n, maxSeconds)); {
	case n <= 0:
		return "0"
	case whole%60 == 0 && whole > 0:
		return strconv.Itoa(whole/60) + "m"
	default:
		return strconv.Itoa(max(whole, 1)) + "s"
	}
}

func clip(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return text
}
