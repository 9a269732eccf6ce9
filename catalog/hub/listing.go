package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

const (
	defaultRevision = "main"
	// Bounds of a hub's list of one repository.
	maxPageBytes = 32 << 20
	maxPages     = 200
	maxFiles     = 100_000
	// maxFileBytes is more than any file has: with larger ones sums overflow.
	maxFileBytes = 1 << 45
)

// Listing is the list of a repository's files.
type Listing struct {
	Repo     string // as the hub spells it
	Revision string // for requesting the files: a commit, if the hub returns one
	library  string // that the model is for, such as "transformers"; empty: the hub doesn't say
	Files    []RemoteFile
}

// mlx is the name of the library of MLX models, which their tags have as well.
const mlx = "mlx"

type api struct {
	hub    *Hub
	client *http.Client
	limits Limits
}

// list requests the list of a repository's files. It pins the commit, so that the files downloaded later are those listed. If
// the hub doesn't accept the commit, the revision's name is used.
func (a *api) list(ctx context.Context, repo, revision string) (Listing, error) {
	var info struct {
		ID  string `json:"id"`
		SHA string `json:"sha"`

		Library string   `json:"library_name"`
		Tags    []string `json:"tags"`
	}
	address := a.hub.at("api", "models", repo)
	if revision != "" {
		address += "/revision/" + url.PathEscape(revision)
	} else {
		revision = defaultRevision
	}
	if _, err := a.get(ctx, address, repo, &info); err != nil {
		return Listing{}, err
	}
	l := Listing{Repo: repo, Revision: revision, library: info.Library}
	if slices.Contains(info.Tags, mlx) {
		l.library = mlx
	}
	if strings.EqualFold(info.ID, repo) {
		l.Repo = info.ID
	}
	var err error
	if commit.MatchString(info.SHA) && info.SHA != revision {
		if l.Files, err = a.tree(ctx, repo, info.SHA); kindOf(err) == ModelNotFound && err != nil {
			l.Files, err = a.tree(ctx, repo, revision)
		} else {
			l.Revision = info.SHA
		}
	} else {
		l.Files, err = a.tree(ctx, repo, revision)
	}
	return l, err
}

var commit = regexp.MustCompile(`^[0-9a-fA-F]{40,64}$`)

// entry is an element of a tree.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	OID  string `json:"oid"`
	Size int64  `json:"size"`
	LFS  *struct {
		OID    string `json:"oid"`
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// tree requests the list of all files of a revision, page by page.
func (a *api) tree(ctx context.Context, repo, revision string) ([]RemoteFile, error) {
	address := a.hub.at("api", "models", repo) + "/tree/" + url.PathEscape(revision) + "?recursive=true"
	var all []RemoteFile
	seen := map[string]bool{}
	for range maxPages {
		var entries []entry
		header, err := a.get(ctx, address, repo, &entries)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type != "file" {
				continue
			}
			f, err := e.file(a.hub, repo)
			if err != nil {
				return nil, err
			}
			if f.Path != "" && !seen[f.Path] {
				seen[f.Path] = true
				all = append(all, f)
			}
		}
		next := nextPage(header)
		if next == "" {
			return all, nil
		}
		base, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		to, err := base.Parse(next)
		if err != nil || !outbound.SameOrigin(to, a.hub.Base) {
			return nil, Errorf(HubFailed, "%s continues its list of files at %s, which isn't the same hub. Check the hub's URL.",
				a.hub.Name(), next)
		}
		address = to.String()
		if len(all) > maxFiles {
			break
		}
	}
	return nil, Errorf(HubFailed, "%s lists more files of %s than can be right. Check the URL.", a.hub.Name(), repo)
}

// hexDigits matches checksums in hex.
var hexDigits = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// file converts an entry. An unsafe name is an error for a model file; other files with such names are skipped.
func (e entry) file(h *Hub, repo string) (RemoteFile, error) {
	f := RemoteFile{Path: e.Path, Size: e.Size}
	if e.LFS != nil {
		f.Size = e.LFS.Size
		for _, sum := range []string{e.LFS.OID, e.LFS.SHA256} {
			sum = strings.ToLower(strings.TrimPrefix(sum, "sha256:"))
			if len(sum) == 64 && hexDigits.MatchString(sum) {
				f.SHA256 = sum
			}
		}
	} else if hexDigits.MatchString(strings.ToLower(e.OID)) && len(e.OID) == 40 {
		f.GitSHA1 = strings.ToLower(e.OID)
	}
	_, err := LocalPath(e.Path)
	lower := strings.ToLower(e.Path)
	isModel := strings.HasSuffix(lower, ".gguf") || strings.HasSuffix(lower, ".safetensors")
	switch {
	case err != nil && isModel:
		return RemoteFile{}, Errorf(Unsafe, "%s names a file of %s that is refused: %w. Nothing was fetched; don't trust this repository.",
			h.Name(), repo, err)
	case err != nil:
		return RemoteFile{}, nil
	case f.Size < 0, f.Size > maxFileBytes:
		return RemoteFile{}, Errorf(HubFailed, "%s says that %s of %s has %d bytes. Try again later, or another hub.", h.Name(), e.Path,
			repo, f.Size)
	}
	return f, nil
}

// nextPage returns the URL of the Link header with rel="next", or "".
func nextPage(header http.Header) string {
	for _, line := range header.Values("Link") {
		for link := range strings.SplitSeq(line, ",") {
			target, params, _ := strings.Cut(link, ";")
			target = strings.TrimSpace(target)
			isNext := strings.Contains(strings.ReplaceAll(params, " ", ""), `rel="next"`)
			if isNext && strings.HasPrefix(target, "<") && strings.HasSuffix(target, ">") {
				return target[1 : len(target)-1]
			}
		}
	}
	return ""
}

// get requests a JSON document. It retries only a few times, because a client is waiting.
func (a *api) get(ctx context.Context, address, repo string, into any) (http.Header, error) {
	for try := 1; ; try++ {
		header, err := a.getOnce(ctx, address, repo, into)
		if err == nil {
			return header, nil
		}
		wait := max(a.limits.FirstRetry<<(try-1), err.RetryAfter)
		if !err.Retry || try >= a.limits.Tries || wait > a.limits.Patience {
			return nil, err
		}
		if canceled := outbound.Sleep(ctx, wait); canceled != nil {
			if errors.Is(context.Cause(ctx), outbound.ErrStalled) { // the time for all tries is up
				return nil, err
			}
			return nil, canceled
		}
	}
}

func (a *api) getOnce(ctx context.Context, address, repo string, into any) (http.Header, *Error) {
	ctx, dog := outbound.WithWatchdog(ctx, cmp.Or(a.hub.Stall, a.limits.Stall))
	defer dog.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, Errorf(Internal, "asking for %s: %w", repo, err)
	}
	request.Header.Set("Accept", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return nil, NoAnswer(ctx, a.hub, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, Refused(a.hub, repo, repo, response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPageBytes+1))
	switch {
	case err != nil:
		return nil, NoAnswer(ctx, a.hub, err)
	case len(body) > maxPageBytes:
		return nil, Errorf(HubFailed, "%s says more of %s than can be right. Check the hub's URL.", a.hub.Name(), repo)
	}
	if err := json.Unmarshal(body, into); err != nil {
		if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text has types of Go
			err = fmt.Errorf("it sends another kind of value (%s) than is expected", other.Value)
		}
		return nil, Errorf(HubFailed, "%s doesn't answer in the way of a hub for %s: %w. Check the hub's URL.", a.hub.Name(), repo, err)
	}
	return response.Header, nil
}
