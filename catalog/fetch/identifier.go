package fetch

import (
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// maxIdentifierBytes bounds the length of a requested name.
const maxIdentifierBytes = 2048

// ref is the meaning of a requested name.
type ref struct {
	hub      *hub
	repo     string // publisher/repository
	mlx      string // another one, with the same model in the MLX format; may be empty
	revision string // empty: the repository's default
	file     string // a file of the repository; may be empty
	dir      string // a folder of the repository; may be empty
	fromURL  bool   // requested by a hub's URL
	// quantization is the one behind an @ in a name that isn't a URL; may be empty.
	quantization string
	// folder is the destination below the models folder, as publisher/name. It determines the model's key.
	folder string
}

// parse interprets a requested name: the URL of a known hub, an entry of the built-in list, or publisher/repository.
func (hs *hubs) parse(model string) (ref, error) {
	model = strings.TrimSpace(model)
	switch {
	case model == "":
		return ref{}, errorf(Invalid, `"model" is required: a catalog identifier, publisher/repository, or the URL of a model on a hub.`).about("model")
	case len(model) > maxIdentifierBytes || strings.ContainsFunc(model, filename.IsInvisible):
		return ref{}, errorf(Invalid, "The model's name is too long or holds control characters.").about("model")
	case strings.Contains(model, "://"):
		return hs.parseURL(model)
	}
	model, quantization, hasQuantization := strings.Cut(model, "@")
	if hasQuantization && (strings.TrimSpace(quantization) == "" || strings.ContainsAny(quantization, "@/")) {
		return ref{}, errorf(Invalid, "After the @ of a model's name there must be one quantization, as in %s@Q4_K_M.", model).about("model")
	}
	if entry, ok := wellKnown(model); ok {
		return ref{hub: hs.all[0], repo: entry.Repo, mlx: entry.MLX, folder: entry.ID, quantization: quantization}, nil
	}
	publisher, repo, ok := strings.Cut(model, "/")
	if !ok || checkRepo(publisher, repo) != nil {
		return ref{}, errorf(ModelNotFound, "The catalog has no model %q. Give one of its identifiers, publisher/repository, or a URL such as %s/publisher/repository.", model, hs.all[0]).about("model")
	}
	return ref{hub: hs.all[0], repo: model, folder: model, quantization: quantization}, nil
}

func (hs *hubs) parseURL(address string) (ref, error) {
	u, err := url.Parse(address)
	if err != nil {
		return ref{}, errorf(Invalid, "The model's URL can't be read: %w.", err).about("model")
	}
	if slices.Contains(publicAliases, u.Host) {
		u.Host = strings.TrimPrefix(PublicHub, "https://")
	}
	if err := outbound.Check(u); err != nil {
		return ref{}, errorf(Invalid, "The model's URL: %w.", err).about("model")
	}
	h, rest := hs.of(u)
	if h == nil {
		return ref{}, errorf(Invalid, "%s is no hub that is known here. There are: %s. Another is added to the configuration with `hub URL`.", u.Host, hs.names()).about("model")
	}
	wrong := errorf(Invalid, "%s isn't the URL of a model. One looks like %s/publisher/repository, with /tree/revision, /blob/revision/file or /resolve/revision/file behind it.", u.Redacted(), h).about("model")
	segments, ok := unescape(rest)
	if !ok || len(segments) < 2 || checkRepo(segments[0], segments[1]) != nil || slices.Contains(notPublishers, segments[0]) {
		return ref{}, wrong
	}
	r := ref{hub: h, repo: segments[0] + "/" + segments[1], fromURL: true}
	r.folder = r.repo
	if len(segments) > 2 && !r.below(segments[2], segments[3:]) {
		return ref{}, wrong
	}
	if r.revision == defaultRevision {
		r.revision = ""
	}
	if r.revision != "" {
		r.folder += "-" + strings.ReplaceAll(r.revision, "/", "-") // separate from the default revision
	}
	return r, nil
}

// notPublishers are first segments of hub paths that aren't publishers.
var notPublishers = []string{"api", "datasets", "spaces", "models", "docs", "collections", "papers", "settings", "join", "login"}

// unescape splits a path into its segments and unescapes them. A segment may contain an escaped slash.
func unescape(path string) ([]string, bool) {
	var segments []string
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" {
			return nil, false
		}
		segments = append(segments, plain)
	}
	return segments, true
}

// below reads the part of a URL after the repository's name.
func (r *ref) below(kind string, rest []string) bool {
	if len(rest) == 0 {
		return false
	}
	n := 1
	if rest[0] == "refs" && len(rest) >= 3 { // such as refs/pr/1
		n = 3
	}
	r.revision = strings.Join(rest[:n], "/")
	path := strings.Join(rest[n:], "/")
	if checkRevision(r.revision) != nil {
		return false
	}
	if path != "" {
		if _, err := localPath(path); err != nil {
			return false
		}
	}
	switch kind {
	case "tree":
		r.dir = path
		return true
	case "blob", "resolve":
		r.file = path
		return path != ""
	default:
		return false
	}
}
