package migration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

const (
	ollamaPort     = 11434
	ollamaRegistry = "registry.ollama.ai"
	ollamaOwn      = "library"
	// maxOllama bounds what is read of a manifest or of a small layer, in bytes.
	maxOllama = 1 << 20
)

// OllamaFolders are the usual places of Ollama's models; only one, if the environment says where they are.
func OllamaFolders(userHome string) []string {
	if set := os.Getenv("OLLAMA_MODELS"); set != "" {
		return []string{set}
	}
	return []string{filepath.Join(userHome, ".ollama", "models"), "/usr/share/ollama/.ollama/models"}
}

// ollamaModel is one name of a model in Ollama's store.
type ollamaModel struct {
	name      string // as Ollama's clients write it
	publisher string
	repo      string
	tag       string
	blob      string // the file's name
	params    string // blobs
	system    string
	lacks     []string // what it has besides, and lmcaddy hasn't
	hasTensor bool
}

// NoModelsError says that a folder has no models of the other program.
type NoModelsError struct{ reason string }

func (e *NoModelsError) Error() string { return e.reason }

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

// ollama adds one name.
func (c *Config) ollama(folder string, o ollamaModel, found []Found) {
	if o.hasTensor {
		c.note("%s: it is in a format of Ollama's own, which no engine of lmcaddy reads. Get it in another: lmcaddy get", o.name)
		return
	}
	key, digest := catalog.Key(o.publisher, o.repo), digestOf(o.blob)
	i := slices.IndexFunc(found, func(f Found) bool {
		return (f.Key == key || strings.HasPrefix(f.Key, key+"@")) && digestOf(filepath.Base(f.Path)) == digest
	})
	if i < 0 {
		c.note("%s: its file is missing in Ollama's store, or can't be read", o.name)
		return
	}
	if found[i].Err != nil {
		c.note("%s: %v", o.name, found[i].Err)
		return
	}
	m := Model{Key: found[i].Key, Aliases: []string{strings.TrimSuffix(o.name, ":latest")}} // which is found with and without
	preset := Preset{Name: o.name}
	c.ollamaParams(folder, o, &m, &preset)
	if o.system != "" {
		if text, err := readSmall(filepath.Join(folder, "blobs", o.system)); err != nil {
			c.note("%s: its system prompt can't be read: %v", o.name, err)
		} else if prompt := strings.TrimSpace(string(text)); prompt != "" {
			preset.Fields = append(preset.Fields, []string{"system_prompt", prompt})
		}
	}
	for _, what := range o.lacks {
		c.note("%s: %s", o.name, what)
	}
	if len(preset.Fields) > 0 {
		c.Presets = append(c.Presets, preset)
		c.note(`%s: its system prompt and stop strings are in the preset of that name, which requests choose with the field "preset"`,
			o.name)
	}
	c.Models = append(c.Models, m)
}

// digestOf is the digest in the name of a blob, which older stores write with a colon.
func digestOf(blob string) string { return blob[max(0, len(blob)-64):] }

// ollamaEnvironment takes over what environment variables say.
func (c *Config) ollamaEnvironment(env func(string) string) {
	idle := 5 * time.Minute // Ollama's default
	if text := env("OLLAMA_KEEP_ALIVE"); text != "" {
		if n, err := strconv.Atoi(text); err == nil {
			idle = time.Duration(max(min(n, maxSeconds), -1)) * time.Second
		} else if d, err := time.ParseDuration(text); err == nil {
			idle = d
		} else {
			c.note("OLLAMA_KEEP_ALIVE %s isn't a duration: the models stay loaded for Ollama's default", text)
		}
	}
	switch {
	case idle < 0:
		c.Options = append(c.Options, []string{"idle_ttl", "0"})
	default:
		c.Options = append(c.Options, []string{"idle_ttl", seconds(max(idle.Seconds(), 1))})
	}
	for _, each := range []struct{ variable, option string }{{"OLLAMA_MAX_LOADED_MODELS", "max_loaded"}, {"OLLAMA_MAX_QUEUE", "queue"}} {
		if n, err := strconv.Atoi(env(each.variable)); err == nil && n > 0 {
			c.Options = append(c.Options, []string{each.option, strconv.Itoa(n)})
		}
	}
	if text := env("OLLAMA_HOST"); text != "" {
		_, at, hasScheme := strings.Cut(text, "://")
		if !hasScheme {
			at = text
		}
		at, _, _ = strings.Cut(at, "/")
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			host = at
		}
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1<<16 {
			c.Port = n
		}
		c.servedOn("Ollama", host)
	}
	c.note("Ollama's other environment variables, which may be those of its service, have these equivalents: " +
		"OLLAMA_NUM_PARALLEL parallel, OLLAMA_CONTEXT_LENGTH context_length of a model, OLLAMA_ORIGINS cors; " +
		"and where they aren't set here, OLLAMA_KEEP_ALIVE idle_ttl, OLLAMA_MAX_LOADED_MODELS max_loaded, OLLAMA_HOST the site's address.")
}

// engineFlags are the arguments of llama-server that give the default of a parameter, by Ollama's names.
var engineFlags = map[string]string{
	"temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p", "min_p": "--min-p", "typical_p": "--typical", "seed": "--seed",
	"repeat_penalty": "--repeat-penalty", "repeat_last_n": "--repeat-last-n", "presence_penalty": "--presence-penalty",
	"frequency_penalty": "--frequency-penalty", "num_predict": "--predict", "num_batch": "--batch-size", "num_thread": "--threads",
	"num_gpu": "--n-gpu-layers", "num_keep": "--keep", "main_gpu": "--main-gpu", "draft_num_predict": "--draft-max",
}

// ollamaParams reads the parameters of a model.
func (c *Config) ollamaParams(folder string, o ollamaModel, m *Model, preset *Preset) {
	if o.params == "" {
		return
	}
	var params map[string]any
	text, err := readSmall(filepath.Join(folder, "blobs", o.params))
	if err == nil {
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		err = numbers.Decode(&params)
	}
	if err != nil {
		c.note("%s: its parameters can't be read: %v", o.name, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := numberIn(params[name])
		stop := stringsIn(params[name])
		switch flag := engineFlags[name]; {
		case name == "num_ctx" && isWhole(value):
			m.set("context_length", value)
		case name == "stop" && len(stop) > 0:
			preset.set("stop", stop...)
		case name == "use_mmap" && params[name] == false:
			m.args("--no-mmap")
		case name == "use_mmap" && params[name] == true, params[name] == nil:
		case flag != "" && value != "":
			m.args(flag, value)
		default:
			c.note("%s: the parameter %s has no equivalent", o.name, name)
		}
	}
}

// numberIn returns a number in JSON as text, which may be in a string; "" for anything else.
func numberIn(value any) string {
	text, _ := value.(string)
	if number, ok := value.(json.Number); ok {
		text = number.String()
	}
	if !jsonNumber.MatchString(text) {
		return ""
	}
	return text
}

var jsonNumber = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,20})?$`)

// isWhole reports whether a text is a whole number above 0.
func isWhole(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0
}

// stringsIn returns a string in JSON, or several. What is empty is left out.
func stringsIn(value any) []string {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var all []string
	for _, each := range list {
		if text, ok := each.(string); ok && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// digestForm matches the digests of blobs, so that no manifest leads out of the folder of blobs.
var digestForm = regexp.MustCompile(`^sha256[:-][0-9a-f]{64}$`)

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
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			return nil
		case !e.Type().IsRegular():
			c.note("%s is passed over: it is a link, or no file", path)
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		if len(parts) < 4 {
			return nil
		}
		n := len(parts)
		o := ollamaModel{publisher: parts[n-3], repo: parts[n-2], tag: parts[n-1]}
		o.name = o.repo + ":" + o.tag
		if o.publisher != ollamaOwn {
			o.name = o.publisher + "/" + o.name
		}
		if registry := strings.Join(parts[:n-3], "/"); registry != ollamaRegistry {
			o.name = registry + "/" + o.name
		}
		text, err := readSmall(path)
		if err == nil {
			err = o.read(text)
		}
		if err != nil {
			c.note("%s: %v", o.name, err)
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

// read reads a manifest. One without a model is an error, as for models that run in the cloud.
func (o *ollamaModel) read(text []byte) error {
	var manifest struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
		} `json:"layers"`
	}
	if json.Unmarshal(text, &manifest) != nil {
		return errors.New("its manifest can't be read: pull it again with Ollama")
	}
	for _, l := range manifest.Layers {
		if !digestForm.MatchString(l.Digest) {
			continue
		}
		blob := strings.Replace(l.Digest, ":", "-", 1)
		switch strings.TrimPrefix(l.MediaType, "application/vnd.ollama.image.") {
		case "model":
			o.blob = cmp.Or(o.blob, blob)
		case "params":
			o.params = blob
		case "system":
			o.system = blob
		case "tensor":
			o.hasTensor = true
		case "messages":
			o.lacks = append(o.lacks, "its example messages (MESSAGE) have no equivalent: clients send them")
		case "draft":
			o.lacks = append(o.lacks, "its draft model isn't taken over: import it as a model, and name its key in the option draft_model")
		}
	}
	if o.blob == "" && !o.hasTensor {
		return errors.New("it has no file, like models that run in Ollama's cloud")
	}
	return nil
}

// readSmall reads a file that has to be small.
func readSmall(path string) ([]byte, error) { return boundedfile.Read(path, maxOllama) }
