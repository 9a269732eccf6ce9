package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	maxExpanded   = 64 << 20 // bytes that all macros of a configuration may become
	// swapPublisher is the publisher of models whose names in llama-swap have none.
	swapPublisher = "llama-swap"
)

// LlamaSwap reads a configuration of llama-swap. The files of its models become links, one for each of its models, since the same
// file may be there with several settings.
func LlamaSwap(ctx context.Context, file string, list List) (*Config, error) {
	text, err := boundedfile.Read(file, maxLlamaSwap)
	if err != nil {
		return nil, err
	}
	text, missing := withVariables(text)
	var from swapConfig
	if err := yaml.Unmarshal(text, &from); err != nil {
		return nil, fmt.Errorf("%s can't be read as a configuration of llama-swap: %w", file, err)
	}
	if len(from.Models) == 0 {
		return nil, fmt.Errorf("%s has no models: name the configuration of llama-swap, such as config.yaml", file)
	}
	c := &Config{Port: llamaSwapPort, NeedsToken: len(texts(from.APIKeys)) > 0}
	if len(missing) > 0 {
		c.note("these environment variables of the configuration aren't set here, and were taken as empty: %s", strings.Join(missing, ", "))
	}
	s := &swap{
		Config: c, ctx: ctx, list: list, from: &from, folder: filepath.Dir(file), keys: map[string]string{},
		names: map[string]string{},
	}
	for _, id := range slices.Sorted(maps.Keys(from.Models)) {
		if err := s.model(id); err != nil {
			return nil, err
		}
	}
	s.rest()
	return c, nil
}

// swap is the translation of one configuration.
type swap struct {
	*Config
	ctx    context.Context
	list   List
	from   *swapConfig
	folder string
	keys   map[string]string // by llama-swap's name
	names  map[string]string // llama-swap's names by those of aliases
	caches map[string][]Found
	// expanded is how much text the macros have become so far, in bytes.
	expanded int
}

// model translates one model.
func (s *swap) model(id string) error {
	node := s.from.Models[id]
	var from swapModel
	if err := node.Decode(&from); err != nil {
		s.note("%s: its settings can't be read: %v", id, err)
		return nil
	}
	macros := overridden(append([]macro{{"MODEL_ID", id}}, macrosIn(&s.from.Macros)...), macrosIn(&from.Macros))
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
	if !ok {
		s.note("%s: it isn't run by llama-server with a model, and can't be taken over (its command: %s)", id, clip(program(words)))
		return nil
	}
	m := Model{Aliases: []string{id}}
	for _, alias := range append(texts(from.Aliases), byID(from.Filters)...) {
		if alias, err := s.expand(alias, macros); err == nil {
			m.Aliases = append(m.Aliases, alias)
			s.names[alias] = id
		} else {
			s.note("%s: an alias can't be read: %v", id, err)
		}
	}
	if err := s.files(id, cmd, &m); err != nil || m.Key == "" {
		return err
	}
	for other, key := range s.keys {
		if key == m.Key { // both are downloaded by llama-server, and have no links of their own
			s.note("%s: it is the same model as %s, whose settings count", id, other)
			s.keys[id] = m.Key
			s.Models = append(s.Models, m)
			return nil
		}
	}
	s.keys[id] = m.Key
	cmd.settings(s.Config, id, s.folder, &m)
	if ttl, ok := s.number(from.TTL, macros); ok && ttl >= 0 {
		m.set("ttl", seconds(ttl))
	}
	s.Models = append(s.Models, m)
	s.lacks(id, &from)
	return nil
}

// byID returns the names that a filter gives a model.
func byID(filters map[string]any) []string {
	params, _ := filters["setParamsByID"].(map[string]any) // without them, there are none
	return slices.Sorted(maps.Keys(params))
}

// lacks notes what has no equivalent.
func (s *swap) lacks(id string, from *swapModel) {
	for _, name := range slices.Sorted(maps.Keys(from.Filters)) {
		if isGiven(from.Filters[name]) {
			s.note(`%s: filters.%s has no equivalent. Request defaults can be in a preset, which requests choose with the field "preset"`,
				id, name)
		}
	}
	var names []string
	for _, each := range texts(from.Env) {
		name, _, _ := strings.Cut(each, "=")
		names = append(names, name)
	}
	if len(names) > 0 {
		s.note("%s: engines get no environment variables of a configuration (%s). GPUs are chosen with args --device", id,
			strings.Join(names, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(from.Rest)) {
		limit, isNumber := s.number(from.Rest[name], macrosIn(&s.from.Macros))
		switch {
		case !isGiven(from.Rest[name]), slices.Contains(modelsOwn, name), isNumber && limit == 0:
		case name == "concurrencyLimit":
			s.note("%s: instead of concurrencyLimit, requests wait in a queue (option queue)", id)
		default:
			s.note("%s: %s has no equivalent", id, name)
		}
	}
}

// rest translates what isn't about a single model.
func (s *swap) rest() {
	if ttl, ok := s.number(s.from.GlobalTTL, macrosIn(&s.from.Macros)); ok && ttl > 0 {
		s.Options = append(s.Options, []string{"idle_ttl", seconds(ttl)})
	} else {
		s.Options = append(s.Options, []string{"idle_ttl", "0"})
	}
	groups := s.from.Groups
	if len(groups) == 0 {
		groups = s.from.Routing.Router.Settings.Groups
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if is := texts(groups[name].Persistent); slices.Equal(is, []string{"true"}) {
			s.each(texts(groups[name].Members), "pin")
		}
	}
	s.each(texts(s.from.Hooks.OnStartup.Preload), "preload")
	s.note("lmcaddy loads as many models as fit into memory, and unloads the least recently used one when another needs its room. " +
		"\"max_loaded 1\" keeps one at a time, as llama-swap does without groups")
	s.note("llama-swap's port is an argument of its own (--listen), which isn't in its configuration: the site has its default, %d",
		llamaSwapPort)
	lacking := map[string]any{
		"matrix": s.from.Matrix, "routing.router.settings.matrix": s.from.Routing.Router.Settings.Matrix,
		"routing.scheduler": s.from.Routing.Scheduler,
	}
	maps.Copy(lacking, s.from.Rest)
	for name, value := range lacking {
		if isGiven(value) && !slices.Contains(swapsOwn, name) {
			s.note("%s: there is no equivalent", name)
		}
	}
	if len(groups) > 0 {
		s.note("groups, except persistent ones, whose models are pinned: there is no equivalent")
	}
	slices.Sort(s.Notes)
	if s.NeedsToken {
		s.note("llama-swap's API keys aren't taken over: make a token for each client with \"lmcaddy token create\"")
	}
}

// each sets an option of the models with these names of llama-swap's.
func (s *swap) each(names []string, option string) {
	for _, name := range names {
		key, ok := s.keys[cmp.Or(s.names[name], name)]
		if i := slices.IndexFunc(s.Models, func(m Model) bool { return ok && m.Key == key }); i >= 0 {
			s.Models[i].set(option)
		}
	}
}

// files finds the files of a model, and gives it its key. Without a file, the key stays empty.
func (s *swap) files(id string, cmd *server, m *Model) error {
	if cmd.repo != "" && cmd.model == "" {
		return s.repository(id, cmd, m)
	}
	publisher, repo := swapPublisher, id
	if before, after, ok := strings.Cut(id, "/"); ok {
		publisher, repo = before, after
	}
	publisher, repo = folderName(publisher), s.unused(folderName(publisher), folderName(repo))
	model, projector, draft := within(s.folder, cmd.model), within(s.folder, cmd.projector), within(s.folder, cmd.draft)
	for _, path := range []string{model, projector, draft} {
		if path == "" {
			continue
		}
		switch info, err := os.Stat(path); {
		case err == nil && info.Mode().IsRegular():
		case path == draft:
			s.note("%s: its draft model %s is missing, and the model runs without it", id, path)
			draft = ""
		case err == nil:
			s.note("%s: %s isn't a file", id, path)
			return nil
		case errors.Is(err, fs.ErrPermission):
			s.note("%s: this user may not read its file %s", id, path)
			return nil
		default:
			s.note("%s: its file %s is missing", id, path)
			return nil
		}
	}
	m.Key = catalog.Key(publisher, repo)
	s.Links = append(s.Links, Link{File: model, Publisher: publisher, Repo: repo})
	if projector != "" {
		s.Links = append(s.Links, Link{File: projector, Publisher: publisher, Repo: repo, IsProjector: true})
	}
	if draft != "" {
		s.Links = append(s.Links, Link{File: draft, Publisher: publisher, Repo: s.unused(publisher, repo+"-draft")})
		m.set("draft_model", catalog.Key(publisher, s.Links[len(s.Links)-1].Repo))
	}
	return nil
}

// unused returns a repository's name for a model of llama-swap, another than all of those before.
func (s *swap) unused(publisher, repo string) string {
	name := repo
	for n := 2; slices.ContainsFunc(s.Links, func(l Link) bool {
		return catalog.Key(l.Publisher, l.Repo) == catalog.Key(publisher,
			name)
	}); n++ {
		name = repo + "-" + strconv.Itoa(n)
	}
	return name
}

// within returns the path of a file that a command names. llama-swap runs commands where it was started, which may be the folder of
// its configuration, or this one.
func within(folder, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	there := filepath.Join(folder, path)
	if _, err := os.Stat(there); err != nil {
		if here, err := filepath.Abs(path); err == nil {
			if _, err := os.Stat(here); err == nil {
				return here
			}
		}
	}
	return there
}

// repository finds a model that llama-server has downloaded itself.
func (s *swap) repository(id string, cmd *server, m *Model) error {
	repo, quantization, _ := strings.Cut(cmd.repo, ":")
	publisher, name, ok := strings.Cut(repo, "/")
	if !ok {
		s.note("%s: %q is no model on Hugging Face", id, repo)
		return nil
	}
	for _, folder := range caches() {
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		found, ok := s.caches[folder]
		if !ok {
			var err error
			if found, err = s.list(s.ctx, folder); err != nil {
				return err
			}
			if s.caches == nil {
				s.caches = map[string][]Found{}
			}
			s.caches[folder] = found
		}
		key := catalog.Key(publisher, name)
		for _, f := range found {
			base, variant, _ := strings.Cut(f.Key, "@")
			if cmd.repoFile != "" && filepath.Base(f.Path) != filepath.Base(cmd.repoFile) {
				continue
			}
			if base == key && f.Err == nil && (quantization == "" || variant == "" || strings.EqualFold(variant, quantization)) {
				m.Key = f.Key
				if !slices.Contains(s.ModelsDirs, folder) {
					s.ModelsDirs = append(s.ModelsDirs, folder)
				}
				return nil
			}
		}
	}
	what := repo
	if quantization != "" {
		what += "@" + strings.ToLower(quantization)
	}
	s.note("%s: it isn't on this machine yet. Download it with \"lmcaddy get %s\"", id, what)
	m.Key = catalog.Key(publisher, name)
	return nil
}

// caches are the folders to which llama-server downloads models.
func caches() []string {
	var folders []string
	for _, each := range []struct{ variable, below string }{{"LLAMA_CACHE", ""}, {"HF_HUB_CACHE", ""}, {"HF_HOME", "hub"}} {
		if set := os.Getenv(each.variable); set != "" {
			folders = append(folders, filepath.Join(set, each.below))
		}
	}
	if dir, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(dir, ".cache", "llama.cpp"), filepath.Join(dir, ".cache", "huggingface", "hub"))
	}
	return folders
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// folderName makes a name fit for a folder.
func folderName(name string) string {
	name = strings.Trim(unsafe.ReplaceAllString(name, "-"), "-._")
	if filename.CheckFolder(name) != nil {
		return "model"
	}
	return name
}

// clip shortens a text for a note.
func clip(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return text
}
