package catalog

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// local is the publisher of files that lie in no publisher's folder.
const local = "local"

// Key is the key of a publisher's repository: what clients name its model by, where it holds one only.
func Key(publisher, repo string) string {
	return unsafeInKeys.Replace(normal(publisher) + "/" + withoutFormat(normal(repo)))
}

// withoutFormat drops a repository's ending that says how its models are stored.
func withoutFormat(repo string) string { return filename.TrimEnding(repo, "-gguf", "-mlx") }

// normal is a name as keys have it.
func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// unsafeInKeys replaces the signs that mean something in a key or in an instance's id.
var unsafeInKeys = strings.NewReplacer("@", "-", ":", "-", ",", "-", " ", "-")

// repository is the publisher and the repository of a file by the folders it lies in below a root, and how many of them are
// within the repository. A file that lies in none has no repository but its own name.
func repository(dirs []string) (publisher, repo string, within int) {
	n := len(dirs)
	switch {
	case n == 0:
		return local, "", 0
	case n == 1:
		return local, dirs[0], 0
	case n > 2 && isPartOf(dirs[n-1], dirs[n-2]):
		return dirs[n-3], dirs[n-2], 1
	default:
		return dirs[n-2], dirs[n-1], 0
	}
}

// isPartOf tells whether a folder is one of those that repositories have for each quantization of a large model.
func isPartOf(folder, repo string) bool {
	name, quantization := filename.TrimQuantization(folder)
	return quantization != "" && (name == "" || normal(name) == withoutFormat(normal(repo)))
}

// withoutQuantization drops a file name's ending that says its quantization: tiny-f16 and tiny.Q4_K_M are tiny.
func withoutQuantization(name, quantization string) string {
	if quantization == "" || len(name) <= len(quantization)+1 {
		return name
	}
	cut := len(name) - len(quantization)
	if strings.EqualFold(name[cut:], quantization) && strings.ContainsRune("-._", rune(name[cut-1])) {
		return name[:cut-1]
	}
	return name
}

// labelled is a model with what its file is called, and what tells it from the others of its repository.
type labelled struct {
	Model
	label, variant string
}

// withVariants adds to the models' keys what tells them from the others of their repository: the quantization, else that
// in the file's name, else all of that name. What others have taken already is not taken again, unless there is no choice.
func withVariants(models []labelled, taken map[string]bool) {
	inHeader, inName, chosen := map[string]int{}, map[string]int{}, map[string]int{}
	named := make([]string, len(models))
	for i, m := range models {
		_, quantization := filename.TrimQuantization(m.label)
		named[i] = normal(quantization)
		inHeader[normal(m.Quantization.Name)]++
		inName[named[i]]++
	}
	suffixes := make([]string, len(models))
	for i, m := range models {
		switch header, name := normal(m.Quantization.Name), named[i]; {
		case header != "" && inHeader[header] == 1:
			suffixes[i] = header
		case name != "" && inName[name] == 1:
			suffixes[i] = name
		default:
			suffixes[i] = normal(m.label)
		}
		chosen[suffixes[i]]++
	}
	for i := range models {
		suffix := suffixes[i]
		if chosen[suffix] > 1 || taken[suffix] {
			suffix = normal(models[i].label)
		}
		models[i].variant = unsafeInKeys.Replace(suffix)
		models[i].Key += "@" + models[i].variant
	}
}
