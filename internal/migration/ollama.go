package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

const ollamaPort = 11434

// OllamaFolders are the usual places of Ollama's models; only one, if the environment says where they are.
func OllamaFolders(userHome string, env func(string) string) []string {
	if set := env("OLLAMA_MODELS"); set != "" {
		return []string{set}
	}
	return []string{filepath.Join(userHome, ".ollama", "models"), "/usr/share/ollama/.ollama/models"}
}

type ollamaModel struct {
	name, publisher, repo string
	blobs                 map[string]string // the files of its layers, by their kinds
}

// Ollama reads Ollama's store. Its models are used where they are: "ollama pull" adds to them, and lmcaddy finds that.
// env has Ollama's environment variables. The error is a [*NoModelsError] if there are no models.
func Ollama(ctx context.Context, folder string, env func(string) string, list List) (*Config, error) {
	c := &Config{ModelsDirs: []string{folder}, Port: ollamaPort}
	names, err := c.ollamaNames(folder)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && len(c.Notes) == 0 {
		return nil, &NoModelsError{folder +
			" has no models of Ollama: name the folder with manifests and blobs in it, which OLLAMA_MODELS has"}
	}
	found, err := list(ctx, folder)
	if err != nil {
		return nil, err
	}
	for _, o := range names {
		c.ollama(folder, o, found)
	}
	c.ollamaEnvironment(env)
	c.note("lmcaddy uses the chat templates in the models' own files, rather than Ollama's.")
	return c, nil
}

func (c *Config) ollama(folder string, o ollamaModel, found []Found) {
	digest := func(blob string) string { return blob[max(0, len(blob)-64):] } // older stores have a colon before it
	key := catalog.Key(o.publisher, o.repo)
	i := slices.IndexFunc(found, func(f Found) bool {
		return (f.Key == key || strings.HasPrefix(f.Key, key+"@")) && digest(filepath.Base(f.Path)) == digest(o.blobs["model"])
	})
	switch {
	case o.blobs["model"] == "":
		c.note("%s: it has no file that an engine of lmcaddy reads, like models that run in Ollama's cloud", o.name)
		return
	case i < 0:
		c.note("%s: its file is missing in Ollama's store, or can't be read", o.name)
		return
	case found[i].Err != nil:
		c.note("%s: %v", o.name, found[i].Err)
		return
	}
	m := Model{Key: found[i].Key, Aliases: []string{strings.TrimSuffix(o.name, ":latest")}} // which is found with and without
	if blob := o.blobs["params"]; blob != "" {
		c.ollamaParams(filepath.Join(folder, "blobs", blob), o.name, &m)
	}
	if blob := o.blobs["system"]; blob != "" {
		text, err := boundedfile.Read(filepath.Join(folder, "blobs", blob), maxFile)
		if prompt := strings.TrimSpace(string(text)); prompt != "" {
			c.preset(&m, o.name, "system_prompt", prompt)
		}
		if err != nil {
			c.note("%s: its system prompt can't be read: %v", o.name, err)
		}
	}
	var others []string
	for _, kind := range []string{"messages", "draft"} {
		if o.blobs[kind] != "" {
			others = append(others, kind)
		}
	}
	c.lacks(o.name, others)
	c.add(m)
}

// engineFlags are the arguments of llama-server that give the default of a parameter, by Ollama's names.
var engineFlags = map[string]string{
	"temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p", "min_p": "--min-p", "typical_p": "--typical", "seed": "--seed",
	"repeat_penalty": "--repeat-penalty", "repeat_last_n": "--repeat-last-n", "presence_penalty": "--presence-penalty",
	"frequency_penalty": "--frequency-penalty", "num_predict": "--predict", "num_batch": "--batch-size", "num_thread": "--threads",
	"num_gpu": "--n-gpu-layers", "num_keep": "--keep", "main_gpu": "--main-gpu", "draft_num_predict": "--draft-max",
}

func (c *Config) ollamaParams(file, name string, m *Model) {
	var params map[string]any
	if !c.read(file, &params) {
		c.note("%s: its parameters can't be read", name)
	}
	var others []string
	for _, param := range slices.Sorted(maps.Keys(params)) {
		value, flag := number(params[param]), engineFlags[param]
		switch {
		case params[param] == nil:
		case param == "num_ctx" && isWhole(value):
			m.set("context_length", value)
		case param == "stop" && len(texts(params[param])) > 0:
			c.preset(m, name, "stop", texts(params[param])...)
		case param == "use_mmap" && params[param] == false:
			m.args("--no-mmap")
		case flag != "" && value != "":
			m.args(flag, value)
		default:
			others = append(others, param)
		}
	}
	c.lacks(name, others)
}

// ollamaEnvironment takes over what environment variables say.
func (c *Config) ollamaEnvironment(env func(string) string) {
	idle := 5 * 60.0 // seconds, Ollama's default
	text := env("OLLAMA_KEEP_ALIVE")
	if n, err := strconv.Atoi(text); err == nil {
		idle = float64(n)
	} else if d, err := time.ParseDuration(text); err == nil {
		idle = d.Seconds()
	}
	if idle >= 0 { // else they stay loaded
		idle = max(idle, 1)
	}
	c.Options = append(c.Options, []string{"idle_ttl", seconds(idle)})
	for _, each := range []struct{ variable, option string }{{"OLLAMA_MAX_LOADED_MODELS", "max_loaded"}, {"OLLAMA_MAX_QUEUE", "queue"}} {
		if text := env(each.variable); isWhole(text) {
			c.Options = append(c.Options, []string{each.option, text})
		}
	}
	at := env("OLLAMA_HOST")
	if _, after, hasScheme := strings.Cut(at, "://"); hasScheme {
		at = after
	}
	at, _, _ = strings.Cut(at, "/")
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		host = at
	}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
		c.Port = int(n)
	}
	c.servedOn("Ollama", host)
	c.note("Ollama's other environment variables, which may be those of its service, have these equivalents: " +
		"OLLAMA_NUM_PARALLEL parallel, OLLAMA_CONTEXT_LENGTH context_length of a model, OLLAMA_ORIGINS cors; " +
		"and where they aren't set here, OLLAMA_KEEP_ALIVE idle_ttl, OLLAMA_MAX_LOADED_MODELS max_loaded, OLLAMA_HOST the site's address.")
}

const joinGroup = "on Linux, \"sudo usermod --append --groups ollama $USER\" gives you access to the models of Ollama's service, " +
	"after the next login"

// ollamaNames reads the manifests: manifests/<registry>/<publisher>/<name>/<tag>. Those that can't be read become notes.
func (c *Config) ollamaNames(folder string) ([]ollamaModel, error) {
	root := filepath.Join(folder, "manifests")
	var all []ollamaModel
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			c.note("%s can't be read: %v; %s", path, err, joinGroup)
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, path)
		parts := strings.Split(filepath.ToSlash(rel), "/")
		n := len(parts)
		if err != nil || n < 4 {
			return err
		}
		o := ollamaModel{name: parts[n-2] + ":" + parts[n-1], publisher: parts[n-3], repo: parts[n-2]}
		if o.publisher != "library" {
			o.name = o.publisher + "/" + o.name
		}
		if registry := strings.Join(parts[:n-3], "/"); registry != "registry.ollama.ai" {
			o.name = registry + "/" + o.name
		}
		text, err := boundedfile.Read(path, maxFile)
		if err == nil {
			o.blobs, err = catalog.OllamaBlobs(text)
		}
		if err != nil {
			c.note("%s: its manifest can't be read: %v", o.name, err)
			return nil
		}
		all = append(all, o)
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: %s", err, joinGroup)
	}
	slices.SortFunc(all, func(a, b ollamaModel) int { return cmp.Compare(a.name, b.name) })
	return all, err
}
