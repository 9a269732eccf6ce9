package hub

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// RemoteFile is a file of a repository, as its hub lists it.
type RemoteFile struct {
	Path   string `json:"path"` // with slashes, below the repository
	Size   int64  `json:"size"` // in bytes
	SHA256 string `json:"sha256,omitempty"`
	// GitSHA1 is the git checksum of a small file, for which hubs have no SHA-256.
	GitSHA1 string `json:"git_sha1,omitempty"`
}

// SameContent reports whether two files have the same size and checksums.
func (f RemoteFile) SameContent(g RemoteFile) bool {
	return f.Size == g.Size && f.SHA256 == g.SHA256 && f.GitSHA1 == g.GitSHA1
}

// variant is one of the models of a repository, usually a quantization.
type variant struct {
	name         string // of its file with its folder, without extension and part number
	quantization string // empty if unknown
	files        []RemoteFile
}

func (v variant) size() int64 {
	n := int64(0)
	for _, f := range v.files {
		n += f.Size
	}
	return n
}

func (v variant) label() string { return cmp.Or(v.quantization, v.name) }

func (v variant) String() string {
	return fmt.Sprintf("%s (%s)", v.label(), FormatSize(v.size()))
}

// FormatSize formats a number of bytes for users.
func FormatSize(bytes int64) string { return humanize.Bytes(uint64(max(0, bytes))) }

func list(all []variant) string {
	var words []string
	for _, v := range all {
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}

// RoleOf returns the role of a file of a repository by its name; "" for a model. There are projectors and the like without a model, too.
func RoleOf(path string) string {
	if !filename.IsGGUF(path) {
		return ""
	}
	role, _ := filename.Companion(path)
	return role
}

// variants groups the GGUF models among the files, best first, and returns the projectors. Split models that lack parts are
// returned separately.
func variants(files []RemoteFile) (whole, incomplete []variant, projectors []RemoteFile) {
	// What a name tells of drafters isn't sure: in a repository without other models they are what it is for.
	var models, perhaps []RemoteFile
	for _, f := range files {
		if !filename.IsGGUF(f.Path) {
			continue
		}
		role, isSure := filename.Companion(f.Path)
		if role == filename.Projector {
			projectors = append(projectors, f)
		}
		if role == "" {
			models = append(models, f)
		} else if !isSure {
			perhaps = append(perhaps, f)
		}
	}
	if len(models) == 0 {
		models = perhaps
	}
	whole, incomplete = grouped(models)
	return whole, incomplete, projectors
}

// grouped puts parts together.
func grouped(files []RemoteFile) (whole, incomplete []variant) {
	type group struct {
		name  string
		parts int // 0: not split
	}
	groups := map[group]*variant{}
	for _, f := range files {
		_, count := filename.Part(f.Path)
		key := group{path.Join(path.Dir(f.Path), filename.Stem(f.Path)), count}
		v := groups[key]
		if v == nil {
			v = &variant{name: key.name, quantization: filename.Quantization(f.Path)}
			groups[key] = v
		}
		v.files = append(v.files, f)
	}
	for key, v := range groups {
		slices.SortFunc(v.files, func(a, b RemoteFile) int { return cmp.Compare(a.Path, b.Path) })
		if len(v.files) == max(key.parts, 1) {
			whole = append(whole, *v)
		} else {
			incomplete = append(incomplete, *v)
		}
	}
	slices.SortFunc(whole, compareVariants)
	slices.SortFunc(incomplete, compareVariants)
	return whole, incomplete
}

// projectorFor returns the projector for a variant: preferably one named after the model, in the same folder, of 16 bits, which
// suits every quantization, and small. Its path is empty if there is none.
func projectorFor(v variant, all []RemoteFile) RemoteFile {
	if len(all) == 0 {
		return RemoteFile{}
	}
	model := filename.ModelName(path.Base(v.name))
	misfit := func(f RemoteFile) (n int) {
		if filename.CompanionName(filename.Stem(f.Path)) != model {
			n += 4
		}
		if path.Dir(f.Path) != path.Dir(v.name) {
			n += 2
		}
		if filename.Quantization(f.Path) != "F16" {
			n++
		}
		return n
	}
	return slices.MinFunc(all, func(a, b RemoteFile) int {
		return cmp.Or(cmp.Compare(misfit(a), misfit(b)), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Path, b.Path))
	})
}

var (
	bitsWord = regexp.MustCompile(`(?i)(?:^|[-._])(\d+)[-_]?bits?(?:$|[-._])`)
	digits   = regexp.MustCompile(`\d+`)
)

// normalQuantization returns one spelling of a quantization for q4-k-m, Q4.K.M and Q4_K_M.
func normalQuantization(name string) string {
	name = strings.ToUpper(strings.TrimSpace(name))
	prefix := ""
	if rest, ok := strings.CutPrefix(name, "UD-"); ok {
		prefix, name = "UD-", rest
	}
	name = strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(name)
	if m := bitsWord.FindStringSubmatch(name); m != nil { // "4 bits"
		return m[1] + "BIT"
	}
	switch name {
	case "FP16":
		name = "F16"
	case "FP32":
		name = "F32"
	}
	return prefix + name
}

// BitsOf returns the approximate bits per weight of a quantization; 0 if unknown.
func BitsOf(quantization string) int {
	name := strings.TrimPrefix(normalQuantization(quantization), "UD-")
	switch {
	case strings.Contains(name, "FP4"):
		return 4
	case name == "":
		return 0
	}
	n, err := strconv.Atoi(digits.FindString(name))
	if err != nil {
		return 0
	}
	return n
}

// fourBits are the quantizations with four bits, best first.
var fourBits = []string{
	"Q4_K_M", "UD-Q4_K_XL", "Q4_K_XL", "Q4_K_L", "Q4_K_S", "Q4_K", "MXFP4_MOE", "MXFP4", "NVFP4", "IQ4_NL", "IQ4_XS", "Q4_1", "Q4_0",
}

// compareVariants orders variants by preference: four bits in the order of fourBits, then more bits, fewest first, then fewer
// bits, most first, then unknown ones.
func compareVariants(a, b variant) int {
	return cmp.Or(
		cmp.Compare(tier(a), tier(b)),
		cmp.Compare(fourBitRank(a), fourBitRank(b)),
		cmp.Compare(distance(a), distance(b)),
		cmp.Compare(middling(a), middling(b)),
		cmp.Compare(b.size(), a.size()),
		cmp.Compare(a.name, b.name),
	)
}

func tier(v variant) int {
	switch bits := BitsOf(v.quantization); {
	case bits == 0:
		return 3
	case bits == 4:
		return 0
	case bits > 4:
		return 1
	default:
		return 2
	}
}

func fourBitRank(v variant) int {
	if tier(v) != 0 {
		return 0
	}
	if i := slices.Index(fourBits, normalQuantization(v.quantization)); i >= 0 {
		return i
	}
	return len(fourBits)
}

func distance(v variant) int {
	d := BitsOf(v.quantization) - 4
	return max(d, -d)
}

// middling prefers the most common quantization among those with the same number of bits.
func middling(v variant) int {
	if strings.HasSuffix(normalQuantization(v.quantization), "_K_M") {
		return 0
	}
	return 1
}
