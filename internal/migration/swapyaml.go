package migration

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// swapConfig is what is read of llama-swap's configuration. Values may be macros where a number is meant, so few have a type.
type swapConfig struct {
	Macros    yaml.Node            `yaml:"macros"`
	GlobalTTL any                  `yaml:"globalTTL"`
	APIKeys   any                  `yaml:"apiKeys"`
	Models    map[string]yaml.Node `yaml:"models"`
	Groups    map[string]swapGroup `yaml:"groups"`
	Matrix    any                  `yaml:"matrix"`
	Hooks     struct {
		OnStartup struct {
			Preload any `yaml:"preload"`
		} `yaml:"on_startup"`
	} `yaml:"hooks"`
	Routing struct {
		Router struct {
			Settings struct {
				Groups map[string]swapGroup `yaml:"groups"`
				Matrix any                  `yaml:"matrix"`
			} `yaml:"settings"`
		} `yaml:"router"`
		Scheduler any `yaml:"scheduler"`
	} `yaml:"routing"`
	Rest map[string]any `yaml:",inline"`
}

// swapModel is a model in it. A field of it is named by its name there.
type swapModel struct {
	Macros  yaml.Node      `yaml:"macros"`
	Cmd     any            `yaml:"cmd"`
	Env     any            `yaml:"env"`
	Aliases any            `yaml:"aliases"`
	TTL     any            `yaml:"ttl"`
	Filters map[string]any `yaml:"filters"`
	Rest    map[string]any `yaml:",inline"`
}

type swapGroup struct {
	Persistent any `yaml:"persistent"`
	Members    any `yaml:"members"`
}

// These fields are about llama-swap's own working, with commands, ports and screens that lmcaddy hasn't.
var (
	swapsOwn = []string{
		"healthCheckTimeout", "unloadTimeout", "startPort", "logLevel", "logTimeFormat", "logToStdout", "metricsMaxInMemory",
		"captureBuffer",
		"store", "ui", "performance", "upstream",
	}
	modelsOwn = []string{"cmdStop", "proxy", "checkEndpoint", "unloadTimeout", "useModelName", "timeouts", "compat", "healthCheckTimeout"}
)

// macro is a text that stands for another.
type macro struct{ name, value string }

// macrosIn returns the macros in a mapping, in its order.
func macrosIn(node *yaml.Node) []macro {
	node = target(node)
	var all []macro
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		name, value := node.Content[i], target(node.Content[i+1])
		if name.Tag == "!!merge" {
			all = overridden(macrosIn(value), all)
			continue
		}
		all = overridden(all, []macro{{name.Value, value.Value}})
	}
	return all
}

// target is the node that an alias stands for, or the node itself.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// overridden returns macros with others in the place of those with their names.
func overridden(all, with []macro) []macro {
	all = slices.Clone(all)
	for _, m := range with {
		if i := slices.IndexFunc(all, func(other macro) bool { return other.name == m.name }); i >= 0 {
			all[i] = m
		} else {
			all = append(all, m)
		}
	}
	return all
}

// expand replaces macros. A macro may have others in it, which are defined before it, so the last ones are replaced first. Each
// may have the one before it twice, so the result is bounded.
func (s *swap) expand(text string, all []macro) (string, error) {
	for _, m := range slices.Backward(all) {
		name := "${" + m.name + "}"
		n := strings.Count(text, name)
		if n == 0 {
			continue
		}
		if n > maxExpanded/(len(m.value)+1) || s.expanded+len(text)+n*len(m.value) > maxExpanded {
			return "", errors.New("its macros make too long a text")
		}
		text = strings.ReplaceAll(text, name, m.value)
		s.expanded += len(text)
	}
	return text, nil
}

var variable = regexp.MustCompile(`\$\{env\.([a-zA-Z_][a-zA-Z0-9_]*)\}`)

// withVariables replaces the environment's variables in a configuration, except for those in comments. It returns the names of those
// that aren't set.
func withVariables(text []byte) (_ []byte, missing []string) {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = variable.ReplaceAllStringFunc(line, func(found string) string {
				name := variable.FindStringSubmatch(found)[1]
				value, ok := os.LookupEnv(name)
				if !ok && !slices.Contains(missing, name) {
					missing = append(missing, name)
				}
				return value
			})
		}
		b.WriteString(line)
	}
	return []byte(b.String()), missing
}

// texts returns the texts of a list, or of a single value. What is empty is left out.
func texts(value any) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var all []string
	for _, each := range list {
		switch each.(type) {
		case string, int, float64, bool:
			if text := strings.TrimSpace(fmt.Sprint(each)); text != "" {
				all = append(all, text)
			}
		}
	}
	return all
}

// isGiven reports whether a value says anything.
func isGiven(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	case string:
		return v != ""
	case bool:
		return v
	}
	return true
}

// number reads a number that may be a macro. One that isn't finite is none.
func (s *swap) number(value any, macros []macro) (float64, bool) {
	text, err := s.expand(strings.Join(texts(value), ""), macros)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}
