package migration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const lmStudioPort = 1234

// LMStudioFolder returns the home folder of LM Studio.
func LMStudioFolder(userHome string) string {
	if pointer, err := readSmall(filepath.Join(userHome, ".lmstudio-home-pointer")); err == nil {
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
	c := &Config{Port: lmStudioPort}
	var settings struct {
		DownloadsFolder string `json:"downloadsFolder"`
		Developer       struct {
			TTL struct {
				Enabled bool    `json:"enabled"`
				Seconds float64 `json:"ttlSeconds"`
			} `json:"jitModelTTL"`
		} `json:"developer"`
	}
	hasSettings := c.readJSON(filepath.Join(folder, "settings.json"), &settings)
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
	if ttl := settings.Developer.TTL; hasSettings && ttl.Enabled && ttl.Seconds > 0 {
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
	if _, err := os.Stat(filepath.Join(folder, "mcp.json")); err == nil {
		c.note("LM Studio's mcp.json has the format of lmcaddy's: copy %s to the home folder of lmcaddy", filepath.Join(folder, "mcp.json"))
	}
	if presets, err := fs.Glob(os.DirFS(folder), "config-presets/*.json"); err == nil && len(presets) > 0 {
		c.note("LM Studio's presets (%d) aren't taken over: the option preset does the same, with the names of OpenAI's fields",
			len(presets))
	}
	return c, nil
}

// lmStudioServer reads where LM Studio serves.
func (c *Config) lmStudioServer(folder string) {
	var server struct {
		Port      int    `json:"port"`
		Interface string `json:"networkInterface"`
		CORS      bool   `json:"cors"`
	}
	c.readJSON(filepath.Join(folder, ".internal", "http-server-config.json"), &server)
	if server.Port > 0 && server.Port < 1<<16 {
		c.Port = server.Port
	}
	c.servedOn("LM Studio", server.Interface)
	if server.CORS {
		c.note("LM Studio let all websites use the models (CORS). The option cors of lm_api lets single ones: " +
			"lm_api { cors https://app.example }")
	}
}

// field is a setting in LM Studio's files. A value that can be switched off is an object with "checked" and "value".
type field struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// given returns the value, or false if it is switched off.
func (f field) given() (json.RawMessage, bool) {
	var optional struct {
		Checked *bool           `json:"checked"`
		Value   json.RawMessage `json:"value"`
	}
	if json.Unmarshal(f.Value, &optional) == nil && optional.Checked != nil {
		return optional.Value, *optional.Checked
	}
	return f.Value, true
}

// list returns a value that is a list of strings.
func (f field) list() []string {
	value, _ := f.given()
	var list []any
	if json.Unmarshal(value, &list) != nil {
		return nil
	}
	return stringsIn(list)
}

// text returns the value, or false if it is switched off or empty.
func (f field) text() (string, bool) {
	value, on := f.given()
	if !on {
		return "", false
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text, text != ""
	}
	text = string(value)
	return text, text != "null" && text != ""
}

// loadFlags are arguments of llama-server that do what a setting of LM Studio does, and predictionFlags those that give the
// default of a request's field.
var (
	loadFlags = map[string]string{
		"llm.load.llama.evalBatchSize": "--batch-size", "llm.load.llama.physicalBatchSize": "--ubatch-size",
		"llm.load.llama.cpuThreadPoolSize":      "--threads",
		"llm.load.llama.kCacheQuantizationType": "--cache-type-k", "llm.load.llama.vCacheQuantizationType": "--cache-type-v",
		"llm.load.ropeFrequencyBase": "--rope-freq-base", "llm.load.ropeFrequencyScale": "--rope-freq-scale", "llm.load.seed": "--seed",
	}
	predictionFlags = map[string]string{
		"llm.prediction.temperature": "--temp", "llm.prediction.topKSampling": "--top-k", "llm.prediction.topPSampling": "--top-p",
		"llm.prediction.minPSampling": "--min-p", "llm.prediction.repeatPenalty": "--repeat-penalty",
		"llm.prediction.llama.presencePenalty": "--presence-penalty", "llm.prediction.llama.frequencyPenalty": "--frequency-penalty",
	}
)

// automatic are settings that lmcaddy and its engine choose by themselves, from what fits.
var automatic = []string{
	"llm.load.llama.acceleration.offloadRatio", "llm.load.llama.autoFit", "load.gpuSplitConfig", "llm.load.llama.tryMmap",
	"llm.load.llama.keepModelInMemory", "llm.load.useUnifiedKvCache", "llm.load.llama.flashAttention", "llm.load.offloadKVCacheToGpu",
}

// cacheTypes are the types that a KV cache may have.
var cacheTypes = []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}

// lmStudioModel reads the user's settings of a model, <publisher>/<repo>/<file>.json, and before them those of its page in the catalog.
func (c *Config) lmStudioModel(folder, models string, f Found, virtual []virtualModel) {
	rel, err := filepath.Rel(models, f.Path)
	if err != nil {
		return
	}
	m := Model{Key: f.Key}
	var config modelConfig
	c.readJSON(filepath.Join(folder, ".internal", "user-concrete-model-default-config", rel+".json"), &config)
	fields := slices.Concat(config.Load.Fields, config.Operation.Fields)
	for _, v := range virtual {
		if base, _, _ := strings.Cut(f.Key, "@"); base == v.base {
			m.Aliases = append(m.Aliases, v.key)
			fields = append(fields, v.fields...)
		}
	}
	seen := map[string]bool{}
	for _, field := range fields {
		if value, on := field.text(); on && !seen[field.Key] && !slices.Contains(automatic, field.Key) {
			c.lmStudioField(&m, field, value)
		}
		seen[field.Key] = true
	}
	if len(m.Aliases)+len(m.Options) > 0 {
		c.Models = append(c.Models, m)
	}
}

// lmStudioField takes over one setting of a model.
func (c *Config) lmStudioField(m *Model, field field, value string) {
	flag := loadFlags[field.Key] + predictionFlags[field.Key]
	switch isCache := strings.HasSuffix(field.Key, "CacheQuantizationType"); {
	case field.Key == "llm.load.contextLength" && isWhole(value):
		m.set("context_length", value)
	case field.Key == "llm.load.numParallelSessions" && isWhole(value):
		m.set("parallel", value)
	case isCache && value == "false":
	case flag != "" && (isCache && slices.Contains(cacheTypes, value) || !isCache && jsonNumber.MatchString(value)):
		m.args(flag, value)
	case field.Key == "llm.prediction.systemPrompt":
		c.preset(m.Key, "system_prompt", value)
	case field.Key == "llm.prediction.stopStrings" && len(field.list()) > 0:
		c.preset(m.Key, "stop", field.list()...)
	case value == "[]" || value == "{}":
	default:
		c.note("%s: the setting %s has no equivalent", m.Key, field.Key)
	}
}

// preset adds a field to the preset of a model.
func (c *Config) preset(key, name string, values ...string) {
	i := slices.IndexFunc(c.Presets, func(p Preset) bool { return p.Name == key })
	if i < 0 {
		i = len(c.Presets)
		c.Presets = append(c.Presets, Preset{Name: key})
		c.note(`%s: its system prompt and stop strings are in the preset of that name, which requests choose with the field "preset"`, key)
	}
	c.Presets[i].set(name, values...)
}

// maxSeconds is more than any model stays loaded, and few enough for a [time.Duration].
const maxSeconds = 100 * 365 * 24 * 60 * 60

// seconds writes a duration as Caddyfiles have it.
func seconds(n float64) string {
	switch whole := int(min(n, maxSeconds)); {
	case n <= 0:
		return "0"
	case whole%60 == 0 && whole > 0:
		return strconv.Itoa(whole/60) + "m"
	default:
		return strconv.Itoa(max(whole, 1)) + "s"
	}
}

// readJSON reads a file. It reports false if there is none; one that can't be read is noted.
func (c *Config) readJSON(path string, to any) bool {
	text, err := readSmall(path)
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), to)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.note("%s can't be read, and what it says is left out: %v", path, err)
	}
	return err == nil
}
