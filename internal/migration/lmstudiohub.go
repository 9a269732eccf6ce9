package migration

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// modelConfig is the settings of a model in LM Studio's files.
type modelConfig struct {
	Load      fields `json:"load"`
	Operation fields `json:"operation"`
}

type fields struct {
	Fields []field `json:"fields"`
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
			Model  string `yaml:"model"`
			Base   any    `yaml:"base"`
			Config struct {
				Load      yamlFields `yaml:"load"`
				Operation yamlFields `yaml:"operation"`
			} `yaml:"config"`
		}
		path = filepath.Join(folder, filepath.FromSlash(path))
		text, err := readSmall(path)
		if err == nil {
			err = yaml.Unmarshal(text, &described)
		}
		if err != nil {
			c.note("%s can't be read, and what it says is left out: %v", path, err)
			continue
		}
		settings := append(described.Config.Load.fields(), described.Config.Operation.fields()...)
		for _, repo := range hubRepositories(described.Base) {
			if described.Model != "" {
				all = append(all, virtualModel{described.Model, catalog.Key(repo[0], repo[1]), settings})
			}
		}
	}
	return all
}

// yamlFields are settings in a model.yaml.
type yamlFields struct {
	Fields []struct {
		Key   string `yaml:"key"`
		Value any    `yaml:"value"`
	} `yaml:"fields"`
}

// fields returns the settings in the form that they have in other files.
func (y yamlFields) fields() (all []field) {
	for _, f := range y.Fields {
		if value, err := json.Marshal(f.Value); err == nil { // else it isn't a setting that JSON can have
			all = append(all, field{f.Key, value})
		}
	}
	return all
}

// hubRepositories returns the users and repositories that a model's files can come from.
func hubRepositories(base any) (all [][2]string) {
	bases, _ := base.([]any)
	for _, each := range bases {
		from, _ := each.(map[string]any)
		sources, _ := from["sources"].([]any)
		for _, source := range sources {
			s, _ := source.(map[string]any)
			user, _ := s["user"].(string)
			repo, _ := s["repo"].(string)
			if user != "" && repo != "" {
				all = append(all, [2]string{user, repo})
			}
		}
	}
	return all
}
