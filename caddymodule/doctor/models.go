package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
)

type model struct {
	key, path string
	size      int64
	problem   string // why it can't be used; empty: it can
	lacks     string // why its engine is too old for it; empty: it isn't
}

// models returns the models that a server has, or that one would have that is started now.
func (s *Subject) models(ctx context.Context) (all []model, _ error) {
	if s.Server != nil {
		list, err := s.Server.Models(ctx)
		for _, m := range list.Models {
			all = append(all, model{key: m.Key, size: m.SizeBytes, lacks: m.EngineProblem})
		}
		for _, b := range list.Broken {
			all = append(all, model{key: b.Key, path: b.Path, problem: b.Error})
		}
		return all, err
	}
	found := node.NewCatalog(slog.New(slog.DiscardHandler), node.BuiltIn())
	found.SetRoots(s.folders())
	list, err := found.Models(ctx)
	e := node.BuiltIn()[0]
	lacks := node.Lacks(e, e.New(s.setupOf(e.Name)))
	for _, m := range list {
		found := model{key: m.Key, path: m.Path, size: m.SizeBytes, lacks: lacks(&m)}
		if m.Err != nil {
			found.problem = m.Err.Error()
		}
		all = append(all, found)
	}
	return all, err
}

func (s *Subject) folders() []string {
	all := []string{s.Home.Models()}
	if s.Config != nil {
		all = append(all, s.Config.ModelsDirs...)
	}
	return all
}

func checkModels(ctx context.Context, s *Subject) (found findings) {
	for i, folder := range s.folders() {
		if _, err := os.ReadDir(folder); err != nil && (i > 0 || !errors.Is(err, fs.ErrNotExist)) {
			found.problem("Correct models_dir, mount its disk, or give this user access to it.", "The models folder %s can't be read: %v.",
				folder, err)
		}
	}
	models, err := s.models(ctx)
	if err != nil {
		return found.problem(`See "lmcaddy ls".`, "The models can't be listed: %v.", err)
	}
	if s.Config != nil {
		found = append(found, s.checkNames(models)...)
	}
	good := 0
	for _, m := range models {
		if m.problem == "" {
			good++
		}
		switch what, advice, _ := strings.Cut(m.lacks, "; "); {
		case m.problem != "":
			found.problem(`Download it again ("lmcaddy get"), or delete its file.`, "The model %s can't be used: %s (%s).", m.key,
				strings.TrimSuffix(m.problem, "."), m.path)
		case what != "":
			advice = upperFirst(strings.TrimRight(cmp.Or(advice, "get a newer engine"), ". ")) + "."
			found.warn(advice, "The model %s can't be loaded: %s.", m.key, what)
		}
	}
	if good == 0 {
		return found.warn(`"lmcaddy get" downloads one, "lmcaddy import" adds a local file.`, "There is no model to use.")
	}
	return found.ok("%s can be used.", count(good, "model", "models"))
}

func count(n int, single, several string) string {
	if n == 1 {
		return "1 " + single
	}
	return fmt.Sprintf("%d %s", n, several)
}

// checkNames checks the names in the settings of models. Without a server, the models of remotes aren't known.
func (s *Subject) checkNames(models []model) (found findings) {
	var keys []string
	for i := range models {
		keys = append(keys, models[i].key)
	}
	isUnknown := func(name string) bool {
		return node.Means(keys, name) == "" && (s.Server != nil || len(s.Config.Remotes) == 0)
	}
	isFile := func(name string) bool { return strings.Contains(name, "@") || strings.HasSuffix(name, ".gguf") } // of a drafter
	for _, m := range s.Config.Models {
		key := node.Means(keys, m.Name)
		options := map[string]string{}
		for _, o := range m.Settings {
			options[o.Name] = o.Value
		}
		if _, preloads := options["preload"]; isUnknown(m.Name) && preloads {
			found.warn(`Correct its name, or get it with "lmcaddy get".`,
				"The model %s is to be preloaded, and there is none of that name.", m.Name)
		} else if isUnknown(m.Name) {
			found.warn("Correct its name, or leave the block out.",
				"The settings of the model %s have no effect: there is none of that name.", m.Name)
		}
		if draft := options["draft_model"]; draft != "" && !isFile(draft) && isUnknown(draft) {
			found.warn(`Correct its name, or get it with "lmcaddy get".`,
				"The model %s has the draft model %s, and there is none of that name.", m.Name, draft)
		}
		for alias := range strings.FieldsSeq(options["alias"]) {
			if other := node.Means(keys, alias); other != "" && other != key {
				found.warn("Choose another alias.", "The alias %s of the model %s is also a name of the model %s.", alias, m.Name, other)
			}
		}
	}
	return found
}
