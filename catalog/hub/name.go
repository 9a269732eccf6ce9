package hub

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// The endings of files that are being downloaded, and of those that say how far.
const (
	PartSuffix       = ".part"
	CheckpointSuffix = ".part.json"
)

// LocalPath converts a file's path in a repository into a path below the folder of a model. It rejects unsafe paths, and the
// names of partial files.
func LocalPath(path string) (string, error) {
	for name := range strings.SplitSeq(strings.ToLower(path), "/") {
		if strings.HasSuffix(name, PartSuffix) || strings.HasSuffix(name, CheckpointSuffix) {
			return "", fmt.Errorf("the name %q is one of a partial file", name)
		}
	}
	return filename.Local(path)
}

// CheckRepo checks that publisher/repository is a valid repository of a hub, and a valid folder.
func CheckRepo(publisher, repo string) error {
	if err := filename.CheckFolder(publisher); err != nil {
		return err
	}
	return filename.CheckFolder(repo)
}

var revisionPart = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// maxIdentifierBytes bounds the length of a requested name.
const maxIdentifierBytes = 2048

// Ref is the meaning of a requested name.
type Ref struct {
	Hub      *Hub
	Repo     string // publisher/repository
	Mlx      string // another one, with the same model in the MLX format; may be empty
	Revision string // empty: the repository's default
	File     string // a file of the repository; may be empty
	Dir      string // a folder of the repository; may be empty
	FromURL  bool   // requested by a hub's URL
	// quantization is the one behind an @ in a name that isn't a URL; may be empty.
	Quantization string
	// folder is the destination below the models folder, as publisher/name. It determines the model's key.
	Folder string
}

func (hs *hubs) parse(model string) (Ref, error) {
	model = strings.TrimSpace(model)
	switch {
	case model == "":
		return Ref{}, Errorf(Invalid,
			`"model" is required: a catalog identifier, publisher/repository, or the URL of a model on a hub.`).About("model")
	case len(model) > maxIdentifierBytes || strings.ContainsFunc(model, filename.IsInvisible):
		return Ref{}, Errorf(Invalid, "The model's name is too long or holds control characters.").About("model")
	case strings.Contains(model, "://"):
		return hs.parseURL(model)
	}
	model, quantization, hasQuantization := strings.Cut(model, "@")
	if hasQuantization && (strings.TrimSpace(quantization) == "" || strings.ContainsAny(quantization, "@/")) {
		return Ref{}, Errorf(Invalid, "After the @ of a model's name there must be one quantization, as in %s@Q4_K_M.",
			model).About("model")
	}
	if entry, ok := wellKnown(model); ok {
		return Ref{Hub: hs.all[0], Repo: entry.Repo, Mlx: entry.MLX, Folder: entry.ID, Quantization: quantization}, nil
	}
	publisher, repo, ok := strings.Cut(model, "/")
	if !ok || CheckRepo(publisher, repo) != nil {
		return Ref{}, Errorf(ModelNotFound, "The catalog has no model %q. Give one of its identifiers, publisher/repository, or a URL "+
			"such as %s/publisher/repository.", model, hs.all[0]).About("model")
	}
	return Ref{Hub: hs.all[0], Repo: model, Folder: model, Quantization: quantization}, nil
}

func (hs *hubs) parseURL(address string) (Ref, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Ref{}, Errorf(Invalid, "The model's URL can't be read: %w.", err).About("model")
	}
	if slices.Contains(publicAliases, u.Host) {
		u.Host = strings.TrimPrefix(PublicHub, "https://")
	}
	if err := outbound.Check(u); err != nil {
		return Ref{}, Errorf(Invalid, "The model's URL: %w.", err).About("model")
	}
	h, rest := hs.of(u)
	if h == nil {
		return Ref{}, Errorf(Invalid, "%s is no hub that is known here. There are: %s. Another is added to the configuration with `hub "+
			"URL`.", u.Host, hs.names()).About("model")
	}
	wrong := Errorf(Invalid, "%s isn't the URL of a model. One looks like %s/publisher/repository, with /tree/revision, "+
		"/blob/revision/file or /resolve/revision/file behind it.", u.Redacted(), h).About("model")
	var segments []string
	for segment := range strings.SplitSeq(strings.Trim(rest, "/"), "/") { // which may contain an escaped slash
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" {
			return Ref{}, wrong
		}
		segments = append(segments, plain)
	}
	if len(segments) < 2 || CheckRepo(segments[0], segments[1]) != nil || slices.Contains(notPublishers, segments[0]) {
		return Ref{}, wrong
	}
	r := Ref{Hub: h, Repo: segments[0] + "/" + segments[1], FromURL: true}
	r.Folder = r.Repo
	if len(segments) > 2 && !r.below(segments[2], segments[3:]) {
		return Ref{}, wrong
	}
	if r.Revision == defaultRevision {
		r.Revision = ""
	}
	if r.Revision != "" {
		r.Folder += "-" + strings.ReplaceAll(r.Revision, "/", "-") // separate from the default revision
	}
	return r, nil
}

// notPublishers are first segments of hub paths that aren't publishers.
var notPublishers = []string{"api", "datasets", "spaces", "models", "docs", "collections", "papers", "settings", "join", "login"}

// below reads the part of a URL after the repository's name.
func (r *Ref) below(kind string, rest []string) bool {
	if len(rest) == 0 {
		return false
	}
	n := 1
	if rest[0] == "refs" && len(rest) >= 3 { // such as refs/pr/1
		n = 3
	}
	r.Revision = strings.Join(rest[:n], "/")
	path := strings.Join(rest[n:], "/")
	isBad := func(part string) bool { return !revisionPart.MatchString(part) || strings.Contains(part, "..") }
	if slices.ContainsFunc(strings.Split(r.Revision, "/"), isBad) {
		return false
	}
	if path != "" {
		if _, err := LocalPath(path); err != nil {
			return false
		}
	}
	switch kind {
	case "tree":
		r.Dir = path
		return true
	case "blob", "resolve":
		r.File = path
		return path != ""
	default:
		return false
	}
}

// FoldersIn returns the folders in which the model may be, the one that it would be downloaded to first. A repository has the hub's
// spelling, so that it has one folder.
func (r *Ref) FoldersIn(l *Listing) []string {
	if r.FromURL || r.Folder == r.Repo {
		r.Folder = l.Repo + r.Folder[len(r.Repo):]
	}
	folders := []string{r.Folder}
	if r.Revision == "" { // it may have been downloaded by another of its names
		folders = append(folders, NamesOf(l.Repo)...)
	}
	return folders
}

// republishers are those who publish others' models as GGUF files, in the order in which they are asked.
var republishers = []string{"ggml-org", "lmstudio-community", "unsloth", "bartowski"}

// dated matches a name that ends in a date, such as qwen3-4b-2507. The publishers have the kind of the model before it.
var dated = regexp.MustCompile(`^(.+)(-\d{4})$`)

// elsewhere returns the repositories in which a model may be as GGUF files, in the order in which they are asked for. It has the
// publisher's own last, since most have none.
func (r *Ref) elsewhere() []string {
	publisher, name, _ := strings.Cut(r.Folder, "/")
	if r.FromURL || r.Revision != "" || filename.TrimEnding(name, "-gguf", "_gguf") != name {
		return nil
	}
	spellings := []string{name}
	if !strings.HasSuffix(name, "-it") && !strings.Contains(name, "instruct") { // people say gemma-3-4b for gemma-3-4b-it
		spellings = append(spellings, name+"-it", name+"-instruct")
		if m := dated.FindStringSubmatch(name); m != nil {
			spellings = append(spellings, m[1]+"-instruct"+m[2])
		}
	}
	var all []string
	for _, spelling := range spellings {
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
