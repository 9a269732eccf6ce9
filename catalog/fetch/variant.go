package fetch

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// remoteFile is a file of a repository, as its hub lists it.
type remoteFile struct {
	Path   string `json:"path"` // with slashes, below the repository
	Size   int64  `json:"size"` // in bytes
	SHA256 string `json:"sha256,omitempty"`
	// GitSHA1 is git's checksum of small files, for which the hub knows no other.
	GitSHA1 string `json:"git_sha1,omitempty"`
}

// sameContent tells whether two files hold the same, as far as their checksums say.
func (f remoteFile) sameContent(g remoteFile) bool {
	return f.Size == g.Size && f.SHA256 == g.SHA256 && f.GitSHA1 == g.GitSHA1
}

// variant is one of the models that a repository holds: mostly a quantization.
type variant struct {
	name         string // of its file, without the ending and the part's number; with its folder
	quantization string // empty where its name doesn't tell
	files        []remoteFile
}

func (v variant) size() int64 {
	n := int64(0)
	for _, f := range v.files {
		n += f.Size
	}
	return n
}

// label is what users know a variant by.
func (v variant) label() string { return cmp.Or(v.quantization, v.name) }

func (v variant) String() string {
	return fmt.Sprintf("%s (%s)", v.label(), sized(v.size()))
}

// sized is a number of bytes for users.
func sized(bytes int64) string { return humanize.IBytes(uint64(max(0, bytes))) }

// list names variants for users.
func list(all []variant) string {
	var words []string
	for _, v := range all {
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}

var (
	projectorWord = regexp.MustCompile(`(?i)(^|[-._])mmproj([-._]|$)`)
	// otherWord is in the names of what is a GGUF file, but no model.
	otherWord = regexp.MustCompile(`(?i)(^|[-._])(imatrix|lora|adapter|control[-_]?vector|ggml-vocab)([-._]|$)`)
)

func isGGUF(file string) bool { return strings.EqualFold(path.Ext(file), ".gguf") }

func isProjector(file string) bool { return isGGUF(file) && projectorWord.MatchString(stemOf(file)) }

// stemOf is a file's name without its ending and its part's number.
func stemOf(file string) string {
	base := path.Base(file)
	return splitSuffix.ReplaceAllString(strings.TrimSuffix(base, path.Ext(base)), "")
}

// variants groups the GGUF models among the files, the best choice first, and gives the projectors among them. Split models
// of which a part isn't there are told apart.
func variants(files []remoteFile) (whole, incomplete []variant, projectors []remoteFile) {
	groups := map[string]*variant{}
	counts := map[string]int{}
	for _, f := range files {
		stem := stemOf(f.Path)
		switch {
		case !isGGUF(f.Path) || otherWord.MatchString(stem):
			continue
		case isProjector(f.Path):
			projectors = append(projectors, f)
			continue
		}
		key, count := path.Join(path.Dir(f.Path), stem), 1
		if m := splitSuffix.FindStringSubmatch(strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path))); m != nil {
			count, _ = strconv.Atoi(m[2])
			key += " in " + m[2] // beside the same in one piece
		}
		v := groups[key]
		if v == nil {
			v = &variant{name: path.Join(path.Dir(f.Path), stem), quantization: quantizationOf(f.Path)}
			groups[key], counts[key] = v, count
		}
		v.files = append(v.files, f)
	}
	for key, v := range groups {
		slices.SortFunc(v.files, func(a, b remoteFile) int { return cmp.Compare(a.Path, b.Path) })
		if len(v.files) == counts[key] {
			whole = append(whole, *v)
		} else {
			incomplete = append(incomplete, *v)
		}
	}
	slices.SortFunc(whole, compareVariants)
	slices.SortFunc(incomplete, compareVariants)
	return whole, incomplete, projectors
}

// projectorFor is the projector that goes with a variant: one that is named after it before one that may be anybody's, then
// that of 16 bits, which is made for every quantization, then the smallest. It has no path if there is none.
func projectorFor(v variant, all []remoteFile) remoteFile {
	if len(all) == 0 {
		return remoteFile{}
	}
	model := bareName(v.name)
	return slices.MinFunc(all, func(a, b remoteFile) int {
		return cmp.Or(
			-compareBool(bareName(a.Path) == model, bareName(b.Path) == model),
			-compareBool(path.Dir(a.Path) == path.Dir(v.name), path.Dir(b.Path) == path.Dir(v.name)),
			-compareBool(quantizationOf(a.Path) == "F16", quantizationOf(b.Path) == "F16"),
			cmp.Compare(a.Size, b.Size),
			cmp.Compare(a.Path, b.Path),
		)
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// bareName is what a file's name says of the model, without the projector's word and the quantization.
func bareName(file string) string {
	name := strings.TrimSuffix(path.Base(file), ".gguf")
	name = splitSuffix.ReplaceAllString(name, "")
	name = projectorWord.ReplaceAllString(name, "$1$2")
	if q := lastQuantization(name); q != "" {
		name = regexp.MustCompile(`(?i)[-._]?`+regexp.QuoteMeta(q)).ReplaceAllString(name, "")
	}
	name = regexp.MustCompile(`(?i)[-._]model$`).ReplaceAllString(name, "")
	return strings.ToLower(strings.Trim(name, "-._"))
}
