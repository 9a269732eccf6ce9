package filename

import (
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

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
