package filename

import (
	"path/filepath"
	"regexp"
	"strings"
)

// The roles of files that belong to a model and aren't models themselves.
const (
	Projector  = "projector"  // adds images or sound to what a model reads
	Drafter    = "drafter"    // drafts the model's next tokens
	Adapter    = "adapter"    // changes the model's weights, such as a LoRA
	Importance = "imatrix"    // which weights matter, for those who quantize the model
	Vocabulary = "vocabulary" // of a model, without its weights
	Vocoder    = "vocoder"    // makes sound of what the model writes, or tokens of sound

	// Safetensors is the role of a folder with weights that no engine here runs. The model may be published as GGUF, or for MLX, too.
	Safetensors = "safetensors"
)

// companionName is a pattern of names that give a file a role. Those of drafters and vocoders are words that models have in their names,
// too, and only tell such a file from the model beside it.
type companionName struct {
	role   string
	isSure bool
	words  *regexp.Regexp // its first group stays when the words are taken out of a name
}

var companionNames = []companionName{
	{Projector, true, regexp.MustCompile(`(?i)(^|[-._])mmproj(?:[-._]model)?(?:[-._]|$)`)},
	{Importance, true, regexp.MustCompile(`(?i)(^|[-._])imatrix(?:[-._]|$)`)},
	{Adapter, true, regexp.MustCompile(`(?i)(^|[-._])(?:lora|adapter|control[-_]?vector)(?:[-._]|$)`)},
	{Vocabulary, true, regexp.MustCompile(`(?i)(^|[-._])ggml-vocab(?:[-._]|$)`)},
	{Vocoder, false, regexp.MustCompile(`(?i)(^|[-._])(?:vocoder|wavtokenizer|snac|tokenizer)(?:[-._]|$)`)},
	{Drafter, false, regexp.MustCompile(`(?i)(^|[-._])(?:assistant|draft|drafter|dflash|dspark|eagle3)(?:[-._]|$)`)},
	{Drafter, false, regexp.MustCompile(`(?i)(^)mtp(?:[-._]|$)`)},
}

// companionFolders are the roles of the files in folders of a repository.
var companionFolders = map[string]string{
	"mtp": Drafter, "eagle3": Drafter, "dflash": Drafter, "dspark": Drafter, "draft": Drafter, "drafter": Drafter,
	"mmproj": Projector, "lora": Adapter, "loras": Adapter, "adapters": Adapter, "imatrix": Importance, "vocoder": Vocoder,
}

// Companion returns the role that the name of a GGUF file, or of its folder, gives it; "" for a model. If it isn't sure, that is the role
// of a file beside a model, and alone it is a model.
func Companion(path string) (role string, isSure bool) {
	stem := Stem(path)
	for _, n := range companionNames {
		if n.words.MatchString(stem) {
			return n.role, n.isSure
		}
	}
	return FolderRole(filepath.Base(filepath.Dir(path))), false
}

// FolderRole returns the role of the files in a folder of a repository with this name; "" if the name gives them none.
func FolderRole(folder string) string { return companionFolders[strings.ToLower(folder)] }

// CompanionName returns the name of the model that a companion belongs to, in lower case, from the companion's stem; "" if it names none.
func CompanionName(stem string) string {
	name := ModelName(stem)
	for _, n := range companionNames {
		name = n.words.ReplaceAllString(name, "$1")
	}
	name, _ = TrimQuantization(strings.Trim(name, "-._"))
	return name
}
