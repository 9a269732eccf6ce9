package catalog

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// local is the publisher of files outside of a publisher's folder.
const local = "local"

// Key returns the key of a publisher's repository, which is the key of its model if it holds only one.
func Key(publisher, repo string) string {
	return unsafeInKeys.Replace(Normal(publisher) + "/" + withoutFormat(Normal(repo)))
}

// withoutFormat removes the ending of a repository's name that gives the format of its models.
func withoutFormat(repo string) string { return filename.TrimEnding(repo, "-gguf", "-mlx") }

// Normal returns a name in the form in which names are compared, which is that of keys: without spaces around it, in lower case, and
// composed (NFC). The names of folders on some systems are decomposed, and so is what people copy from there.
func Normal(name string) string { return norm.NFC.String(strings.ToLower(strings.TrimSpace(name))) }

// unsafeInKeys replaces characters that have a meaning in keys or instance IDs.
var unsafeInKeys = strings.NewReplacer("@", "-", ":", "-", ",", "-", " ", "-")

// repository returns the publisher and the repository of a file, given the folders between a root and the file, and the number
// of these folders that are within the repository. repo is empty for a file directly in the root.
func repository(dirs []string) (publisher, repo string, within int) {
	n := len(dirs)
	switch {
	case n > 2 && filename.FolderRole(dirs[n-1]) != "":
		publisher, repo, within = repository(dirs[:n-1])
		return publisher, repo, within + 1
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

// isPartOf reports whether a folder holds one quantization of a repository.
func isPartOf(folder, repo string) bool {
	name, quantization := filename.TrimQuantization(folder)
	return quantization != "" && (name == "" || Normal(name) == withoutFormat(Normal(repo)))
}

// withoutQuantization removes a quantization at the end of a file's name: tiny-f16 and tiny.Q4_K_M become tiny.
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

// labelled is a model with the name of its file, and the variant in its key.
type labelled struct {
	Model
	label, variant, scope string
}

// variantOf returns the variant that a model's quantization makes, or "". GGUF files and MLX folders of one repository share some
// quantizations, such as F16.
func variantOf(m *Model) string {
	name := Normal(m.Quantization.Name)
	if m.Format == FormatMLX && name != "" && !strings.HasSuffix(name, "bit") {
		return "mlx-" + name
	}
	return name
}

// withVariants appends variants to the keys of models that share a repository: the quantization, or else the one in the file's
// name, or else that whole name. Variants in taken are avoided if possible.
func withVariants(models []labelled, taken map[string]bool) {
	inHeader, inName, chosen := map[string]int{}, map[string]int{}, map[string]int{}
	named := make([]string, len(models))
	for i, m := range models {
		_, quantization := filename.TrimQuantization(m.label)
		named[i] = Normal(quantization)
		inHeader[variantOf(&m.Model)]++
		inName[named[i]]++
	}
	suffixes := make([]string, len(models))
	for i, m := range models {
		switch header, name := variantOf(&m.Model), named[i]; {
		case header != "" && inHeader[header] == 1:
			suffixes[i] = header
		case name != "" && inName[name] == 1:
			suffixes[i] = name
		default:
			suffixes[i] = Normal(m.label)
		}
		chosen[suffixes[i]]++
	}
	for i := range models {
		suffix := suffixes[i]
		if chosen[suffix] > 1 || taken[suffix] {
			suffix = Normal(models[i].label)
		}
		models[i].variant = unsafeInKeys.Replace(suffix)
		models[i].Key += "@" + models[i].variant
	}
}
