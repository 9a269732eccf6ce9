package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

const (
	llamaSwapPort = 8080
	maxLlamaSwap  = 16 << 20 // bytes of a configuration
	maxExpanded   = 1 << 20  // bytes of a text with its macros
)

// Link makes a file one of <publisher>/<repo> in the models folder, and returns the key of the model there. The error says why it can't be.
type Link func(file, publisher, repo string) (key string, err error)

// swapConfig is what is read of llama-swap's configuration. Values may be macros where a number is meant, so few have a type.
type swapConfig struct {
	Macros    map[string]any       `yaml:"macros"`
	GlobalTTL any                  `yaml:"globalTTL"`
	APIKeys   any                  `yaml:"apiKeys"`
	Models    map[string]yaml.Node `yaml:"models"`
	Groups    map[string]swapGroup `yaml:"groups"`
	Hooks     struct {
		OnStartup struct {
			Preload any `yaml:"preload"`
		} `yaml:"on_startup"`
	} `yaml:"hooks"`
	Routing struct {
		Router struct {
			Settings struct {
				Groups map[string]swapGroup `yaml:"groups"`
			} `yaml:"settings"`
		} `yaml:"router"`
	} `yaml:"routing"`
	Rest map[string]any `yaml:",inline"`
}

// swapModel is a model in it. A field of it is named by its name there.
type swapModel struct {
	Macros  map[string]any `yaml:"macros"`
	Cmd     any            `yaml:"cmd"`
	Aliases any            `yaml:"aliases"`
	TTL     any            `yaml:"ttl"`
	Filters map[string]any `yaml:"filters"`
	Rest    map[string]any `yaml:",inline"`
}

type swapGroup struct {
	Persistent any `yaml:"persistent"`
	Members    any `yaml:"members"`
}

// swapsOwn are fields about llama-swap's own working, with commands, ports and screens that lmcaddy hasn't.
var swapsOwn = []string{
	"healthCheckTimeout", "unloadTimeout", "startPort", "logLevel", "logTimeFormat", "logToStdout", "metricsMaxInMemory", "captureBuffer",
	"store", "ui", "performance", "upstream", "cmdStop", "proxy", "checkEndpoint", "useModelName", "timeouts", "compat",
}

// LlamaSwap reads a configuration of llama-swap. The files of its models are linked, once for each of its models, since the same
// file may be there with several settings.
func LlamaSwap(ctx context.Context, file string, list List, link Link) (*Config, error) {
	text, err := boundedfile.Read(file, maxLlamaSwap)
	if err != nil {
		return nil, err
	}
	var from swapConfig
	if err := yaml.Unmarshal(text, &from); err != nil {
		return nil, fmt.Errorf("%s can't be read as a configuration of llama-swap: %w", file, err)
	}
	if len(from.Models) == 0 {
		return nil, fmt.Errorf("%s has no models: name the configuration of llama-swap, such as config.yaml", file)
	}
	s := &swap{
		Config: &Config{Port: llamaSwapPort, NeedsToken: len(texts(from.APIKeys)) > 0},
		ctx:    ctx, list: list, link: link, folder: filepath.Dir(file), pinned: map[string]bool{}, preloaded: map[string]bool{},
	}
	s.all(&from)
	for _, id := range slices.Sorted(maps.Keys(from.Models)) {
		node, model := from.Models[id], swapModel{}
		if err := node.Decode(&model); err != nil {
			s.note("%s: its settings can't be read: %v", id, err)
			continue
		}
		macros := maps.Clone(from.Macros)
		if macros == nil {
			macros = map[string]any{}
		}
		maps.Copy(macros, model.Macros)
		macros["MODEL_ID"] = id
		if err := s.model(id, &model, macros); err != nil {
			return nil, err
		}
	}
	return s.Config, nil
}

type swap struct {
	*Config
	ctx               context.Context
	list              List
	link              Link
	folder            string
	repos             []string        // of the models so far, in the models folder
	pinned, preloaded map[string]bool // by llama-swap's names
}

// all translates what isn't about a single model.
func (s *swap) all(from *swapConfig) {
	ttl, _ := s.number(from.GlobalTTL, from.Macros)
	s.Options = append(s.Options, []string{"idle_ttl", seconds(ttl)})
	for _, group := range slices.AppendSeq(slices.Collect(maps.Values(from.Groups)), maps.Values(from.Routing.Router.Settings.Groups)) {
		for _, member := range texts(group.Members) {
			s.pinned[member] = s.pinned[member] || slices.Equal(texts(group.Persistent), []string{"true"})
		}
	}
	for _, name := range texts(from.Hooks.OnStartup.Preload) {
		s.preloaded[name] = true
	}
	s.note("lmcaddy loads as many models as fit into memory, and unloads the least recently used one when another needs its room. " +
		"\"max_loaded 1\" keeps one at a time, as llama-swap does without groups")
	s.note("llama-swap's port is an argument of its own (--listen), which isn't in its configuration: the site has its default, %d",
		llamaSwapPort)
	s.lacks("the configuration", given(from.Rest))
	if s.NeedsToken {
		s.note("llama-swap's API keys aren't taken over: make a token for each client with \"lmcaddy token create\"")
	}
}

// given returns the fields that say anything, and are about what lmcaddy does as well.
func given(fields map[string]any) (names []string) {
	for name, value := range fields {
		isEmpty := slices.Contains([]string{"<nil>", "false", "0", "", "[]", "map[]"}, fmt.Sprint(value))
		if !isEmpty && !slices.Contains(swapsOwn, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s *swap) model(id string, from *swapModel, macros map[string]any) error {
	command, err := s.expand(withoutComments(strings.Join(texts(from.Cmd), " ")), macros)
	var words []string
	if err == nil {
		words, err = commandWords(command, runtime.GOOS)
	}
	if err != nil {
		s.note("%s: its command can't be read: %v", id, err)
		return nil
	}
	cmd, ok := parseServer(words)
	if !ok { // its arguments may have secrets in them
		program := clip(strings.Join(words[:min(1, len(words))], ""))
		s.note("%s: it isn't run by llama-server with a model, and can't be taken over: %s", id, program)
		return nil
	}
	m := Model{Aliases: []string{id}}
	byID, _ := from.Filters["setParamsByID"].(map[string]any) // each set of parameters has a name
	for _, alias := range append(texts(from.Aliases), slices.Sorted(maps.Keys(byID))...) {
		if alias, err := s.expand(alias, macros); err == nil {
			m.Aliases = append(m.Aliases, alias)
		} else {
			s.note("%s: an alias can't be read: %v", id, err)
		}
	}
	find := s.files
	if cmd.repo != "" && cmd.model == "" {
		find = s.repository
	}
	if err := find(id, cmd, &m); err != nil || m.Key == "" {
		return err
	}
	cmd.settings(s.Config, id, s.folder, &m)
	if ttl, ok := s.number(from.TTL, macros); ok && ttl >= 0 {
		m.set("ttl", seconds(ttl))
	}
	for _, option := range []struct {
		name string
		of   map[string]bool
	}{{"pin", s.pinned}, {"preload", s.preloaded}} {
		if slices.ContainsFunc(m.Aliases, func(name string) bool { return option.of[name] }) {
			m.set(option.name)
		}
	}
	s.add(m)
	others := given(from.Rest)
	for _, filter := range given(from.Filters) {
		others = append(others, "filters."+filter)
	}
	s.lacks(id, others)
	return nil
}

// files links the files of a model, and gives it its key. Without a file, the key stays empty.
func (s *swap) files(id string, cmd *server, m *Model) error {
	publisher, repo, ok := strings.Cut(id, "/")
	if !ok {
		publisher, repo = "llama-swap", id
	}
	publisher, repo = folderName(publisher), folderName(repo)
	one := func(what, file, repo string) (key string) {
		if file == "" {
			return ""
		}
		key, err := s.link(within(s.folder, file), publisher, repo)
		if err != nil {
			s.note("%s: its %s can't be used: %v", id, what, err)
			return ""
		}
		return key
	}
	repo = s.unused(publisher, repo)
	if m.Key = one("file", cmd.model, repo); m.Key == "" {
		return nil
	}
	one("projector", cmd.projector, repo)
	if draft := one("draft model", cmd.draft, s.unused(publisher, repo+"-draft")); draft != "" {
		m.set("draft_model", draft)
	}
	return nil
}

// unused returns a repository's name that none of the models before has.
func (s *swap) unused(publisher, repo string) string {
	name := repo
	for n := 2; slices.Contains(s.repos, catalog.Key(publisher, name)); n++ {
		name = repo + "-" + strconv.Itoa(n)
	}
	s.repos = append(s.repos, catalog.Key(publisher, name))
	return name
}

// within returns the path of a file that a command names. llama-swap runs commands where it was started, which may be the folder of
// its configuration, or this one.
func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	there := filepath.Join(folder, path)
	if here, err := filepath.Abs(path); err == nil && !exists(there) && exists(here) {
		return here
	}
	return there
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// repository finds a model that llama-server has downloaded itself.
func (s *swap) repository(id string, cmd *server, m *Model) error {
	repo, quantization, _ := strings.Cut(cmd.repo, ":")
	publisher, name, ok := strings.Cut(repo, "/")
	if !ok {
		s.note("%s: %q is no model on Hugging Face", id, repo)
		return nil
	}
	m.Key = catalog.Key(publisher, name)
	var caches []string // to which llama-server downloads models
	for _, each := range []struct{ variable, below string }{{"LLAMA_CACHE", ""}, {"HF_HUB_CACHE", ""}, {"HF_HOME", "hub"}} {
		if set := os.Getenv(each.variable); set != "" {
			caches = append(caches, filepath.Join(set, each.below))
		}
	}
	if dir, err := os.UserHomeDir(); err == nil {
		caches = append(caches, filepath.Join(dir, ".cache", "llama.cpp"), filepath.Join(dir, ".cache", "huggingface", "hub"))
	}
	for _, folder := range caches {
		if !exists(folder) {
			continue
		}
		found, err := s.list(s.ctx, folder)
		if err != nil {
			return err
		}
		for _, f := range found {
			base, variant, _ := strings.Cut(f.Key, "@")
			if base == m.Key && f.Err == nil && (quantization == "" || variant == "" || strings.EqualFold(variant, quantization)) {
				m.Key = f.Key
				if !slices.Contains(s.ModelsDirs, folder) {
					s.ModelsDirs = append(s.ModelsDirs, folder)
				}
				return nil
			}
		}
	}
	if quantization != "" {
		repo += "@" + strings.ToLower(quantization)
	}
	s.note("%s: it isn't on this machine yet. Download it with \"lmcaddy get %s\"", id, repo)
	return nil
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func folderName(name string) string {
	name = strings.Trim(unsafe.ReplaceAllString(name, "-"), "-._")
	if filename.CheckFolder(name) != nil {
		return "model"
	}
	return name
}

var macro = regexp.MustCompile(`\$\{([A-Za-z0-9_.-]+)\}`)

// expand replaces macros and the environment's variables. A macro may have others in it, and each may have another twice, so the
// result is bounded. A placeholder without a value stays.
func (s *swap) expand(text string, macros map[string]any) (string, error) {
	for range 20 {
		size, isTooLong := 0, false
		expanded := macro.ReplaceAllStringFunc(text, func(found string) string {
			name := found[2 : len(found)-1]
			value := strings.Join(texts(macros[name]), " ")
			if _, isMacro := macros[name]; !isMacro {
				variable, isVariable := strings.CutPrefix(name, "env.")
				if !isVariable {
					return found
				}
				if value, ok := os.LookupEnv(variable); ok {
					return value
				}
				s.note("the environment variable %s of the configuration isn't set here, and was taken as empty", variable)
			}
			if size += len(value); size > maxExpanded {
				isTooLong = true
				return ""
			}
			return value
		})
		if isTooLong || len(expanded) > maxExpanded {
			break
		}
		if expanded == text {
			return text, nil
		}
		text = expanded
	}
	return "", errors.New("its macros make too long a text")
}

// number reads a number that may be a macro.
func (s *swap) number(value any, macros map[string]any) (float64, bool) {
	text, err := s.expand(strings.Join(texts(value), ""), macros)
	if err != nil || !numbers.MatchString(text) {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
