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
	"unicode"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/node"
)

// model is a model on the disk.
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

// folders are the folders of models.
func (s *Subject) folders() []string {
	all := []string{s.Home.Models()}
	if s.Config != nil {
		all = append(all, s.Config.ModelsDirs...)
	}
	return all
}

// checkModels checks that the folders of models can be read, and the models in them.
func checkModels(ctx context.Context, s *Subject) []Finding {
	var found []Finding
	for i, folder := range s.folders() {
		switch _, err := os.ReadDir(folder); {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && i == 0:
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, one(Problem, fmt.Sprintf("The models folder %s doesn't exist.", folder),
				"Correct models_dir, make the folder, or mount its disk.")...)
		case errors.Is(err, fs.ErrPermission):
			found = append(found, one(Problem, fmt.Sprintf("This user may not read the models folder %s.", folder),
				"Give this user access to it.")...)
		default:
			found = append(found, one(Problem, fmt.Sprintf("The models folder %s can't be read: %v.", folder, err),
				"See whether it is a folder, and its disk is mounted.")...)
		}
	}
	models, err := s.models(ctx)
	if err != nil {
		return append(found, one(Problem, fmt.Sprintf("The models can't be listed: %v.", err), `See "lmcaddy ls".`)...)
	}
	good := 0
	for _, m := range models {
		if m.problem == "" {
			good++
			if m.lacks != "" {
				what, advice, _ := strings.Cut(m.lacks, "; ")
				found = append(found, one(Warning, fmt.Sprintf("The model %s can't be loaded: %s.", m.key, what),
					sentenceOf(errors.New(cmp.Or(advice, "get a newer engine"))))...)
			}
			continue
		}
		found = append(found, one(Problem, fmt.Sprintf("The model %s can't be used: %s (%s).", m.key, strings.TrimSuffix(m.problem, "."),
			m.path), `Download it again ("lmcaddy get"), or delete its file.`)...)
	}
	if good == 0 {
		return append(found, one(Warning, "There is no model to use.",
			`"lmcaddy get" downloads one, "lmcaddy import" adds a local file.`)...)
	}
	return append(found, ok("%s can be used.", count(good, "model", "models"))...)
}

func count(n int, single, several string) string {
	if n == 1 {
		return "1 " + single
	}
	return fmt.Sprintf("%d %s", n, several)
}

// sentenceOf is an error as a sentence.
func sentenceOf(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimRight(text[size:], ". ") + "."
}
