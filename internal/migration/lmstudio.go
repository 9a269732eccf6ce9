package migration

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// LMStudioFolder returns the home folder of LM Studio.
func LMStudioFolder(userHome string) string {
	if pointer, err := boundedfile.Read(filepath.Join(userHome, ".lmstudio-home-pointer"), maxFile); err == nil {
		if folder := strings.TrimSpace(string(pointer)); folder != "" {
			return folder
		}
	}
	older := filepath.Join(userHome, ".cache", "lm-studio")
	if _, err := os.Stat(older); err == nil {
		return older
	}
	return filepath.Join(userHome, ".lmstudio")
}

// LMStudio reads the home folder of LM Studio, or a folder of its models. The models are used where they are.
// The error is a [*NoModelsError] if there are no models.
func LMStudio(ctx context.Context, folder string, list List) (*Config, error) {
	c := &Config{Port: 1234}
	var settings struct {
		DownloadsFolder string `json:"downloadsFolder"`
		Developer       struct {
			TTL struct {
				Enabled bool    `json:"enabled"`
				Seconds float64 `json:"ttlSeconds"`
			} `json:"jitModelTTL"`
		} `json:"developer"`
	}
	c.read(filepath.Join(folder, "settings.json"), &settings)
	models := filepath.Join(folder, "models")
	if settings.DownloadsFolder != "" {
		models = settings.DownloadsFolder
	} else if _, err := os.Stat(models); err != nil {
		models = folder
	}
	found, err := list(ctx, models)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, &NoModelsError{models +
			" has no models: name the home folder of LM Studio, such as ~/.lmstudio, or its folder of models"}
	}
	c.ModelsDirs = []string{models}
	if ttl := settings.Developer.TTL; ttl.Enabled && ttl.Seconds > 0 {
		c.Options = append(c.Options, []string{"idle_ttl", seconds(ttl.Seconds)})
	}
	c.lmStudioServer(folder)
	virtual := c.lmStudioHub(folder)
	for _, f := range found {
		if f.Err != nil {
			c.note("%s: %v", f.Key, f.Err)
			continue
		}
		c.lmStudioModel(folder, models, f, virtual)
	}
	c.note("LM Studio's mcp.json has the format of lmcaddy's: to use it, copy it to the home folder of lmcaddy. " +
		"Its presets aren't taken over: the option preset does the same, with the names of OpenAI's fields")
	return c, nil
}

// lmStudioServer reads where LM Studio serves.
func (c *Config) lmStudioServer(folder string) {
	var server struct {
		Port      int    `json:"port"`
		Interface string `json:"networkInterface"`
		CORS      bool   `json:"cors"`
	}
	c.read(filepath.Join(folder, ".internal", "http-server-config.json"), &server)
	if server.Port > 0 && server.Port < 1<<16 {
		c.Port = server.Port
	}
	c.servedOn("LM Studio", server.Interface)
	if server.CORS {
		c.note("LM Studio let all websites use the models (CORS). The option cors of lm_api lets single ones: " +
			"lm_api { cors https://app.example }")
	}
}

// modelConfig is the settings of a model in LM Studio's files.
type modelConfig struct {
	Load      fields `json:"load" yaml:"load"`
	Operation fields `json:"operation" yaml:"operation"`
}

type fields struct {
	Fields []field `json:"fields" yaml:"fields"`
}

// field is a setting. A value that can be switched off is an object with "checked" and "value".
type field struct {
	Key   string `json:"key" yaml:"key"`
	Value any    `json:"value" yaml:"value"`
}

// given returns the value; nil: it is switched off.
func (f field) given() any {
	optional, _ := f.Value.(map[string]any)
	switch checked, is := optional["checked"].(bool); {
	case is && checked:
		return optional["value"]
	case is:
		return nil
	}
	return f.Value
}

// loadFlags are arguments of llama-server that do what a setting of LM Studio does, or give the default of a request's field.
var loadFlags = map[string]string{
	"llm.load.llama.evalBatchSize": "--batch-size", "llm.load.llama.physicalBatchSize": "--ubatch-size",
	"llm.load.llama.cpuThreadPoolSize":      "--threads",
	"llm.load.llama.kCacheQuantizationType": "--cache-type-k", "llm.load.llama.vCacheQuantizationType": "--cache-type-v",
	"llm.load.ropeFrequencyBase": "--rope-freq-base", "llm.load.ropeFrequencyScale": "--rope-freq-scale", "llm.load.seed": "--seed",
	"llm.prediction.temperature": "--temp", "llm.prediction.topKSampling": "--top-k", "llm.prediction.topPSampling": "--top-p",
	"llm.prediction.minPSampling": "--min-p", "llm.prediction.repeatPenalty": "--repeat-penalty",
	"llm.prediction.llama.presencePenalty": "--presence-penalty", "llm.prediction.llama.frequencyPenalty": "--frequency-penalty",
}

// automatic are settings that lmcaddy and its engine choose by themselves, from what fits.
var automatic = []string{
	"llm.load.llama.acceleration.offloadRatio", "llm.load.llama.autoFit", "load.gpuSplitConfig", "llm.load.llama.tryMmap",
	"llm.load.llama.keepModelInMemory", "llm.load.useUnifiedKvCache", "llm.load.llama.flashAttention", "llm.load.offloadKVCacheToGpu",
}

// cacheTypes are the types that a KV cache may have.
var cacheTypes = []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}

// lmStudioModel reads the user's settings of a model, <publisher>/<repo>/<file>.json, and after them those of its page in the catalog.
func (c *Config) lmStudioModel(folder, models string, f Found, virtual []virtualModel) {
	m := Model{Key: f.Key}
	var config modelConfig
	if rel, err := filepath.Rel(models, f.Path); err == nil {
		c.read(filepath.Join(folder, ".internal", "user-concrete-model-default-config", rel+".json"), &config)
	}
	all := slices.Concat(config.Load.Fields, config.Operation.Fields)
	for _, v := range virtual {
		if base, _, _ := strings.Cut(f.Key, "@"); base == v.base {
			m.Aliases = append(m.Aliases, v.key)
			all = append(all, v.fields...)
		}
	}
	var others []string
	seen := map[string]bool{}
	for _, field := range all {
		values, isNew := texts(field.given()), !seen[field.Key]
		seen[field.Key] = true
		if !isNew || len(values) == 0 || slices.Contains(automatic, field.Key) {
			continue
		}
		if !c.lmStudioField(&m, field.Key, values) {
			others = append(others, field.Key)
		}
	}
	c.lacks(f.Key, others)
	c.add(m)
}

// lmStudioField takes over one setting of a model. It reports whether there is an equivalent.
func (c *Config) lmStudioField(m *Model, key string, values []string) bool {
	value, flag, isCache := values[0], loadFlags[key], strings.HasSuffix(key, "CacheQuantizationType")
	switch {
	case key == "llm.load.contextLength" && isWhole(value):
		m.set("context_length", value)
	case key == "llm.load.numParallelSessions" && isWhole(value):
		m.set("parallel", value)
	case isCache && value == strconv.FormatBool(false):
	case isCache && slices.Contains(cacheTypes, value), !isCache && flag != "" && numbers.MatchString(value):
		m.args(flag, value)
	case key == "llm.prediction.systemPrompt":
		c.preset(m, m.Key, "system_prompt", value)
	case key == "llm.prediction.stopStrings":
		c.preset(m, m.Key, "stop", values...)
	default:
		return false
	}
	return true
}

// virtualModel is a name of LM Studio's catalog, for a model of a hub.
type virtualModel struct {
	key    string
	base   string // the model's key
	fields []field
}

// lmStudioHub reads the models that come from LM Studio's catalog: hub/models/<publisher>/<name>/model.yaml. Clients know a model by
// the name that it has there, and its files are those of another publisher.
func (c *Config) lmStudioHub(folder string) (all []virtualModel) {
	paths, _ := fs.Glob(os.DirFS(folder), "hub/models/*/*/model.yaml") // the pattern is valid
	for _, path := range paths {
		var described struct {
			Model string `yaml:"model"`
			Base  []struct {
				Sources []struct {
					User string `yaml:"user"`
					Repo string `yaml:"repo"`
				} `yaml:"sources"`
			} `yaml:"base"`
			Config modelConfig `yaml:"config"`
		}
		if !c.read(filepath.Join(folder, filepath.FromSlash(path)), &described) || described.Model == "" {
			continue
		}
		settings := slices.Concat(described.Config.Load.Fields, described.Config.Operation.Fields)
		for _, base := range described.Base {
			for _, s := range base.Sources {
				all = append(all, virtualModel{described.Model, catalog.Key(s.User, s.Repo), settings})
			}
		}
	}
	return all
}
