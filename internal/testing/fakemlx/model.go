package fakemlx

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
)

const defaultVocabulary = 32000

// model is a loaded model.
type model struct {
	path       string
	vocabulary int
}

// openModel looks at a model's folder.
func openModel(s *Script, path string) (*model, error) {
	m := &model{path: path, vocabulary: cmp.Or(s.Vocabulary, defaultVocabulary)}
	if s.AnyModel {
		return m, nil
	}
	if _, err := os.Stat(path); err != nil && path != "" {
		if os.Getenv("HF_HUB_OFFLINE") == "1" {
			return nil, raise("LocalEntryNotFoundError", "Cannot find an appropriate cached snapshot folder for the specified revision on the "+
				"local disk and outgoing traffic has been disabled. To enable repo look-ups and downloads online, set 'HF_HUB_OFFLINE=0' as "+
				"environment variable.")
		}
		return nil, raise("RepositoryNotFoundError", "404 Client Error. Repository Not Found for url: "+
			"https://huggingface.co/api/models/%s/revision/main.", path)
	}
	text, err := os.ReadFile(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, raise("FileNotFoundError", "[Errno 2] No such file or directory: '%s'", filepath.Join(path, "config.json"))
	}
	var config struct {
		Vocabulary int `json:"vocab_size"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, raise("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)")
	}
	m.vocabulary = cmp.Or(s.Vocabulary, config.Vocabulary, defaultVocabulary)
	return m, nil
}
