package hub

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// republishers are those who publish others' models as GGUF files, in the order in which they are asked.
var republishers = []string{"ggml-org", "lmstudio-community", "unsloth", "bartowski"}

// dated matches a name that ends in a date, such as qwen3-4b-2507. The publishers have the kind of the model before it.
var dated = regexp.MustCompile(`^(.+)(-\d{4})$`)

// spellings returns the names that a model's repository may have, without the ending: people say gemma-3-4b for gemma-3-4b-it.
func spellings(name string) []string {
	all := []string{name, name + "-it", name + "-instruct"}
	if m := dated.FindStringSubmatch(name); m != nil {
		all = append(all, m[1]+"-instruct"+m[2])
	}
	return slices.DeleteFunc(all, func(s string) bool {
		return s != name && (strings.HasSuffix(name, "-it") || strings.Contains(name, "instruct"))
	})
}

// elsewhere returns the repositories in which a model may be as GGUF files, in the order in which they are asked for. It has the
// publisher's own last, since most have none.
func (r *Ref) elsewhere() []string {
	publisher, name, _ := strings.Cut(r.Folder, "/")
	if r.FromURL || r.Revision != "" || filename.TrimEnding(name, "-gguf", "_gguf") != name {
		return nil
	}
	var all []string
	for _, spelling := range spellings(name) {
		for _, other := range republishers {
			all = append(all, other+"/"+spelling+"-GGUF")
			if other == "bartowski" {
				all = append(all, other+"/"+publisher+"_"+spelling+"-GGUF")
			}
		}
		all = append(all, publisher+"/"+spelling+"-GGUF", publisher+"/"+spelling+"_gguf")
	}
	return slices.DeleteFunc(all, func(repo string) bool {
		publisher, name, _ := strings.Cut(repo, "/")
		return strings.EqualFold(repo, r.Repo) || CheckRepo(publisher, name) != nil
	})
}

// isAnotherName reports whether an error of a hub means that the model may be in another repository.
func isAnotherName(err error) bool {
	kind := kindOf(err)
	return err != nil && (kind == ModelNotFound || kind == NotImplemented || kind == Denied)
}

// Locate lists the repository that a request means. If the hub doesn't have it, or it holds nothing that runs here, such as a publisher's
// own with the weights for other programs, it is another repository of the same model, which the request then means.
func (s *Finder) Locate(ctx context.Context, r *Ref, m Machine, log *slog.Logger) (Listing, error) {
	api := s.api(r.Hub)
	first, err := api.list(ctx, r.Repo, r.Revision)
	why := err
	if err == nil {
		_, why = AllChoices(first, r.Dir, m)
	}
	if !isAnotherName(why) {
		return first, err
	}
	for _, repo := range r.elsewhere() {
		l, failed := api.list(ctx, repo, "")
		if failed == nil {
			_, failed = AllChoices(l, "", m)
		}
		switch {
		case failed == nil:
			log.Info("a model is taken from another repository", "model", r.Folder, "repo", l.Repo)
			r.Repo, r.Folder = l.Repo, strings.ToLower(r.Folder)
			return l, nil
		case !isAnotherName(failed):
			return first, failed
		}
	}
	return first, err
}
