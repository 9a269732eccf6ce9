// Package filename has the rules for the names of model files and of the folders that they are in: which names are safe on
// every system, and what the name of a GGUF file says. The catalog and the downloads share them.
package filename

import (
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNameBytes leaves room for the suffixes of temporary files within the 255 bytes that file systems allow.
	maxNameBytes = 240
	maxPathBytes = 1024
)

var (
	// device matches the names of devices on Windows, with any extension.
	device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)`)

	// folder matches the names that hubs allow for publishers and repositories.
	folder = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
)

// Local converts a slash-separated path from elsewhere into a path of this system. It refuses a path that could lead out of
// the folder that it is relative to, on this system or on another that the folder may be copied to.
func Local(path string) (string, error) {
	if path == "" || len(path) > maxPathBytes {
		return "", fmt.Errorf("a path of %d bytes", len(path))
	}
	for segment := range strings.SplitSeq(path, "/") {
		if err := check(segment); err != nil {
			return "", err
		}
	}
	local := filepath.FromSlash(path)
	if !filepath.IsLocal(local) { // the system may know more than check
		return "", fmt.Errorf("%q leads outside of the folder", path)
	}
	return local, nil
}

// CheckFolder refuses a name that a publisher or a repository can't have on a hub, or that can't be the name of a folder on every system.
func CheckFolder(name string) error {
	if !folder.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%q is not the name of a publisher or repository", name)
	}
	return check(name)
}

// check refuses a name that a file or folder can't or shouldn't have on some system.
func check(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("the name %q leads elsewhere", name)
	case len(name) > maxNameBytes:
		return fmt.Errorf("a name of %d bytes", len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q isn't UTF-8", name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Errorf("the name %q holds a sign that means something to a system", name)
	case strings.ContainsFunc(name, IsInvisible):
		return fmt.Errorf("the name %q holds control characters", name)
	case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q begins or ends with what some systems drop", name)
	case device.MatchString(name):
		return fmt.Errorf("the name %q is a device's", name)
	}
	return nil
}

// IsInvisible reports whether r is a control character, or changes the direction or form of the characters around it.
func IsInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == '\x7f'
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// TrimEnding removes the first of the endings that a name has, in any case. A name that is nothing else stays.
func TrimEnding(name string, endings ...string) string {
	for _, ending := range endings {
		if n := len(name) - len(ending); n > 0 && strings.EqualFold(name[n:], ending) {
			return name[:n]
		}
	}
	return name
}

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

// quantizations matches the names of quantizations in the names of files.
const quantizations = `(?:UD-)?(?:[IT]?Q\d\w*|BF16|F16|F32|MXFP4\w*|NVFP4\w*)`

var (
	partSuffix         = regexp.MustCompile(`-(\d{5})-of-(\d{5})$`)
	quantizationEnding = regexp.MustCompile(`(?i)(^|[-._])(` + quantizations + `)$`)
	// quantizationWord matches more than an ending may be: repositories have folders and files named for FP16 and FP32.
	quantizationWord = regexp.MustCompile(`(?i)(?:^|[-._/])(` + quantizations + `|FP16|FP32)(?:$|[-._/])`)
)

// IsGGUF reports whether a path ends in .gguf, in any case, and has a name before that.
func IsGGUF(path string) bool {
	base := filepath.Base(path)
	return TrimEnding(base, ".gguf") != base
}

// Stem returns the name of a file without its extension and the number of its part.
func Stem(path string) string { return partSuffix.ReplaceAllString(base(path), "") }

func base(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// Part returns the number of a split model's part, from 1, and the number of its parts. Both are 0 for the path of a file
// that isn't a part.
func Part(path string) (number, count int) {
	if digits := partDigits(path); digits != nil {
		number, _ = strconv.Atoi(digits[1])
		count, _ = strconv.Atoi(digits[2])
	}
	return number, count
}

// IsLaterPart reports whether a path is that of a part of a split model, but not of the first, which stands for all of them.
func IsLaterPart(path string) bool {
	digits := partDigits(path)
	return digits != nil && digits[1] != "00001"
}

// partDigits matches partSuffix.
func partDigits(path string) []string {
	if !strings.Contains(path, "-of-") { // spares most files the regular expression
		return nil
	}
	return partSuffix.FindStringSubmatch(base(path))
}

// OtherParts returns the numbers and the paths of the parts that belong to a split model's first part; none for other files.
func OtherParts(first string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number, count := Part(first)
		if number != 1 {
			return
		}
		ext := filepath.Ext(first)
		stem := strings.TrimSuffix(first, ext)
		stem = stem[:len(stem)-len("-00001-of-00001")]
		for n := 2; n <= count && yield(n, fmt.Sprintf("%s-%05d-of-%05d%s", stem, n, count, ext)); n++ {
		}
	}
}

// Quantization returns the quantization that a slash-separated path names, in upper case: the last one in the file's name,
// or else in the path of its folder. It is empty if there is none.
func Quantization(file string) string {
	if q := LastQuantization(Stem(file)); q != "" {
		return q
	}
	return LastQuantization(path.Dir(file))
}

// LastQuantization returns the last quantization that a text names, in upper case, or "".
func LastQuantization(text string) string {
	last := ""
	for {
		m := quantizationWord.FindStringSubmatchIndex(text)
		if m == nil {
			return strings.ToUpper(last)
		}
		last, text = text[m[2]:m[3]], text[m[3]:] // the separator after a word may be the one before the next
	}
}

// TrimQuantization splits a name into what comes before the quantization that it ends in, and the quantization; "" if it ends in none.
func TrimQuantization(name string) (before, quantization string) {
	ending := quantizationEnding.FindString(name)
	return name[:len(name)-len(ending)], strings.Trim(ending, "-._")
}

// ModelName returns the part of a stem that names the model, in lower case. The name of a companion may repeat that.
func ModelName(stem string) string {
	name, _ := TrimQuantization(stem)
	return strings.ToLower(name)
}
