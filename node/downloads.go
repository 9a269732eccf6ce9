package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Downloads downloads models, and removes them.
type Downloads struct {
	*base
	engines *Engines
	devices *Devices
	stores  *Stores
	record  *record.Record
	jobs    atomic.Pointer[fetch.Jobs] // nil before the first settings, or if failed has the reason
	failed  atomic.Pointer[error]
}

// open opens the downloads with the first settings, which name the hubs, and resumes unfinished ones. Later
// settings only change the hubs and how many run at a time. The caller holds n.mu.
func (dl *Downloads) open(s *Settings) {
	prefers := catalog.FormatGGUF
	if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
		prefers = catalog.FormatMLX // which is faster there
	}
	var err error
	if jobs := dl.jobs.Load(); jobs != nil {
		jobs.SetAtOnce(s.MaxDownloads)
		err = jobs.SetHubs(s.Hubs)
	} else {
		jobs, err = fetch.Open(fetch.Options{
			Models: dl.home.Models(), State: dl.home.Downloads(), Hubs: s.Hubs, Formats: dl.engines.formatsNow, Prefers: prefers,
			AtOnce: s.MaxDownloads, Memory: dl.devices.modelRoom, Listed: dl.listed, Here: dl.isHere, Elsewhere: dl.elsewhere,
			Changed: dl.record.Events.JobChanged, Log: dl.log.With("part", "downloads"),
		})
		if err == nil {
			dl.jobs.Store(jobs)
		}
	}
	if err != nil {
		dl.log.Error("nothing can be downloaded", "error", err)
		dl.failed.Store(&err)
		return
	}
	dl.failed.Store(nil)
}

// formatsNow returns the formats that are worth downloading: those of the first engine, and of the others that are installed.
func (en *Engines) formatsNow() []catalog.Format {
	var formats []catalog.Format
	for i, e := range en.inOrder {
		if i > 0 && e.Find != nil {
			if _, err := e.Find(e.setup); err != nil {
				continue
			}
		}
		formats = append(formats, e.Formats...)
	}
	return formats
}

func (dl *Downloads) close() error {
	if jobs := dl.jobs.Load(); jobs != nil {
		return jobs.Close()
	}
	return nil
}

// Jobs returns the downloads into the home's models folder. The error says why downloads are unavailable.
func (dl *Downloads) Jobs() (*fetch.Jobs, error) {
	if jobs := dl.jobs.Load(); jobs != nil {
		return jobs, nil
	}
	message := "Nothing can be downloaded before the server has started."
	if err := dl.failed.Load(); err != nil {
		message = fmt.Sprintf("Nothing can be downloaded: %v. Fix that, and reload the configuration.", *err)
	}
	return nil, &hub.Error{Kind: hub.Internal, Message: message}
}

// Key returns the key of the model that a job downloads. While the files are incomplete, or if the catalog
// doesn't list them, it is the repository's key, which the final key may extend by @ and a quantization.
func (dl *Downloads) Key(ctx context.Context, j fetch.Job) string {
	key := access.DownloadKey(j.Folder, "")
	if j.State != fetch.Completed || len(j.Files) == 0 {
		return key
	}
	if m, ok, err := dl.modelAt(ctx, dl.pathOf(j.Files[len(j.Files)-1])); err == nil && ok {
		return m.Key
	}
	return key
}

// HasFolder reports whether the catalog has a model of a folder (publisher/name), according to the last scan of the disk.
func (n *Names) HasFolder(folder string) bool { return n.means(folder) != "" }

// JobKey returns the key by which an identity may use the model of a download; false: it may not, and so may not see the download.
func (dl *Downloads) JobKey(ctx context.Context, who *access.Identity, j fetch.Job) (string, bool) {
	keys := dl.JobKeys(ctx, j)
	i := slices.IndexFunc(keys, who.MayUse)
	if i < 0 {
		return keys[len(keys)-1], false
	}
	return keys[i], true
}

// JobKeys returns the keys of the model of a download. Whoever may use one of them may see the download.
func (dl *Downloads) JobKeys(ctx context.Context, j fetch.Job) []string {
	return []string{access.DownloadKey(j.Folder, ""), access.DownloadKey(j.Folder, j.Quantization), dl.Key(ctx, j)}
}

func (dl *Downloads) pathOf(local string) string {
	return filepath.Join(dl.home.Models(), filepath.FromSlash(local))
}

// listed returns an error unless the catalog lists the model that a file belongs to.
func (dl *Downloads) listed(ctx context.Context, file string) error {
	if err := dl.catalog.Refresh(ctx); err != nil {
		return err
	}
	switch m, ok, err := dl.modelAt(ctx, file); {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%s isn't a model that can be run here", filepath.Base(file))
	default:
		return m.Err
	}
}

// modelAt returns the model, or the companion of one, whose path is a file or the file's folder.
func (dl *Downloads) modelAt(ctx context.Context, file string) (catalog.Model, bool, error) {
	all, err := dl.catalog.Models(ctx)
	if err != nil {
		return catalog.Model{}, false, err
	}
	i := slices.IndexFunc(all, func(m catalog.Model) bool {
		return m.Path == file || m.Path == filepath.Dir(file) // in some formats, a model is a folder
	})
	if i >= 0 {
		return all[i], true, nil
	}
	companions, err := dl.catalog.Companions(ctx)
	if i = slices.IndexFunc(companions, func(c catalog.Companion) bool { return c.Path == file }); i >= 0 {
		return companions[i].Model, true, nil
	}
	return catalog.Model{}, false, err
}

// isHere returns the folder and quantization of the catalog's model for a repository's folder (publisher/name).
func (dl *Downloads) isHere(ctx context.Context, folder, quantization, file string) (dir, is string, _ bool) {
	variant := quantization
	if file != "" {
		variant = strings.TrimSuffix(path.Base(file), path.Ext(file))
	}
	m, err := dl.catalog.Lookup(ctx, access.DownloadKey(folder, variant))
	if err != nil || m.Err != nil || file != "" && quantization != "" { // the two may contradict each other
		return "", "", false
	}
	return filepath.Dir(m.Path), cmp.Or(quantization, m.Quantization.Name), true
}

// elsewhere returns another program's folder that has a repository's files, maybe with a prefix as in llama.cpp's cache, or "".
func (dl *Downloads) elsewhere(repo string, sizes map[string]int64) string {
	all, err := dl.catalog.Models(dl.ctx)
	if err != nil {
		return ""
	}
	publisher, name, _ := strings.Cut(repo, "/")
	key := catalog.Key(publisher, name)
	for _, m := range all {
		of, _, _ := strings.Cut(m.Key, "@")
		if of == key && m.Err == nil && !isBelow(dl.home.Models(), m.Path) && haveAll(m.Path, sizes) {
			return filepath.Dir(m.Path)
		}
	}
	return ""
}

func haveAll(model string, sizes map[string]int64) bool {
	dir, base := filepath.Split(model)
	prefix, found := "", false
	for name := range sizes {
		before, ok := strings.CutSuffix(base, name)
		if ok && (before == "" || strings.HasSuffix(before, "_")) {
			prefix, found = before, true
		}
	}
	for name, size := range sizes {
		if info, err := os.Stat(filepath.Join(dir, prefix+name)); err != nil || info.Size() != size {
			return false
		}
	}
	return found
}

func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Remove deletes a model's files from the home's models folder, and returns its key. The name isn't an alias. may refuses models. The error
// is may's, a [*translate.Error], a [*catalog.RemoveError], a [*catalog.NotFoundError], the context's or the file system's.
func (dl *Downloads) Remove(ctx context.Context, name string, may func(key string) error) (key string, err error) {
	names := namesOf(name)
	m, err := dl.catalog.LookupOnly(ctx, names[0], names[1:]...)
	if found, unknown := dl.catalog.Companion(name, filename.Drafter, ""); err != nil && unknown == nil {
		m, err = found.Model, nil
	}
	if err != nil {
		if fetching := dl.fetching(ctx, func(key, _ string) bool { return strings.EqualFold(key, name) }); fetching != nil {
			return "", fetching
		}
		return "", err
	}
	if err := may(m.FullKey()); err != nil {
		return "", err
	}
	for _, in := range dl.supervisor.Instances() {
		if !m.IsRemote && in.Spec.Model.Path == m.Path || in.Spec.Draft != nil && in.Spec.Draft.Path == m.Path {
			return "", inUse("The model %s is in use by the instance %s (%s). Unload that first.", m.Key, in.ID, in.Status)
		}
	}
	if fetching := dl.fetching(ctx, func(_, path string) bool { return path == m.Path || path == m.Projector }); fetching != nil {
		return "", fetching
	}
	if err := dl.catalog.Remove(ctx, dl.home.Models(), m); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			reason := fmt.Sprintf("its files may not be deleted by this user (%v); change their folder's rights", err)
			return "", &catalog.RemoveError{Key: m.Key, Reason: reason}
		}
		return "", err
	}
	dl.supervisor.Handle(schedule.Forgot{Key: m.Key})
	dl.stores.warm.DeleteModel(m.Key)
	dl.log.Info("a model was removed", "model", m.Key, "file", m.Path)
	return m.Key, nil
}

// fetching returns an [*translate.Error] if a running job downloads a wanted model, by its key and the path of a file.
func (dl *Downloads) fetching(ctx context.Context, wanted func(key, path string) bool) error {
	for _, j := range dl.list() {
		if j.State != fetch.Downloading {
			continue
		}
		key := dl.Key(ctx, j)
		if slices.ContainsFunc(j.Files, func(f string) bool { return wanted(key, dl.pathOf(f)) }) {
			return inUse("%s is being downloaded by %s. Cancel that first: POST /api/v1/models/download/%s/cancel.", key, j.ID, j.ID)
		}
	}
	return nil
}

func inUse(format string, args ...any) error {
	return translate.NewError(translate.KindConflict, "model_in_use", "model", fmt.Sprintf(format, args...))
}

// Counts returns the number of downloads in each state, and the bytes that those in progress have yet to fetch.
func (dl *Downloads) Counts() (states map[fetch.State]int, left int64) {
	states = map[fetch.State]int{fetch.Downloading: 0, fetch.Paused: 0, fetch.Completed: 0, fetch.Failed: 0}
	for _, j := range dl.list() {
		states[j.State]++
		if j.State == fetch.Downloading {
			left += max(0, j.TotalBytes-j.DownloadedBytes)
		}
	}
	return states, left
}
