package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

const maxManifest = 1 << 20 // bytes

var errAdapter = errors.New("it is a model with an adapter, which can't be used: merge the adapter into the model")

// digestForm matches the digests of blobs, so that no manifest leads out of the folder of blobs.
var digestForm = regexp.MustCompile(`^sha256[:-][0-9a-f]{64}$`)

// OllamaBlobs returns the files that a manifest of Ollama's names, by their kinds, such as "model". Of a kind that it has twice, the first
// counts.
func OllamaBlobs(manifest []byte) (map[string]string, error) {
	var from struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	err := json.Unmarshal(manifest, &from)
	blobs := map[string]string{}
	for _, l := range from.Layers {
		if kind := strings.TrimPrefix(l.MediaType, "application/vnd.ollama.image."); digestForm.MatchString(l.Digest) && blobs[kind] == "" {
			blobs[kind] = strings.Replace(l.Digest, ":", "-", 1)
		}
	}
	return blobs, err
}

// manifest is the content of a tag.
type manifest struct {
	model, projector string // file names of blobs
	adapter          bool
}

// tagged is a tag in Ollama's store: manifests/<registry>/<publisher>/<name>/<tag>.
type tagged struct {
	path, publisher, name, tag string
	manifest
}

func (w *walk) ollama(p location) error {
	var all []tagged
	root := filepath.Join(p.dir, "manifests")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		if err != nil {
			w.catalog.report(path, err)
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		names := strings.Split(filepath.ToSlash(rel), "/")
		switch {
		case strings.HasPrefix(e.Name(), ".") && path != root, e.IsDir() && len(names) > maxNesting:
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			if w.left.folders--; w.left.folders < 0 {
				return errEnough
			}
			return nil
		case len(names) < 4 || !e.Type().IsRegular():
			return nil
		}
		if w.left.files--; w.left.files < 0 {
			return errEnough
		}
		text, err := boundedfile.Read(path, maxManifest)
		if err != nil {
			w.catalog.report(path, err)
			return nil
		}
		if blobs, err := OllamaBlobs(text); err == nil && blobs["model"] != "" { // those of models in the cloud have none
			n := len(names)
			of := manifest{blobs["model"], blobs["projector"], blobs["adapter"] != ""}
			all = append(all, tagged{path, names[n-3], names[n-2], names[n-1], of})
		}
		return nil
	})
	for _, t := range withoutSynonyms(all) {
		if err := w.tagged(p.dir, t); err != nil {
			return err
		}
	}
	return err
}

// withoutSynonyms keeps one of the tags that have the same content, preferably one other than "latest".
func withoutSynonyms(all []tagged) []tagged {
	isLatest := func(t tagged) bool { return t.tag == "latest" }
	latest := slices.DeleteFunc(slices.Clone(all), func(t tagged) bool { return !isLatest(t) })
	all = append(slices.DeleteFunc(all, isLatest), latest...)
	type same struct {
		publisher, name string
		manifest
	}
	seen := map[same]bool{}
	return slices.DeleteFunc(all, func(t tagged) bool {
		key := same{Normal(t.publisher), Normal(t.name), t.manifest}
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// tagged adds the files of a model. Their names are digests, so the tag serves as the label.
func (w *walk) tagged(store string, t tagged) error {
	of := found{format: FormatGGUF, layout: LayoutOllama, publisher: t.publisher, repo: t.name, label: t.tag, scope: t.path}
	if t.adapter {
		of.problem = errAdapter
	}
	path, info, err := blob(store, t.model)
	if err != nil {
		of.problem = errors.Join(of.problem, fmt.Errorf("its blob %s is missing: pull it again with Ollama", t.model))
		of.path = path
		return w.add(of)
	}
	if err := w.file(path, filepath.Base(path), info, of); err != nil || t.projector == "" {
		return err
	}
	of.problem, of.label = nil, "mmproj"
	if path, info, err = blob(store, t.projector); err != nil {
		w.catalog.report(path, err)
		return nil
	}
	return w.file(path, filepath.Base(path), info, of)
}

// blob returns the path of a blob. In older stores its name contains a colon.
func blob(store, name string) (path string, info fs.FileInfo, err error) {
	path = filepath.Join(store, "blobs", name)
	if info, err = os.Stat(path); err == nil {
		return path, info, nil
	}
	old := filepath.Join(store, "blobs", strings.Replace(name, "-", ":", 1))
	if info, err := os.Stat(old); err == nil {
		return old, info, nil
	}
	return path, nil, err
}
