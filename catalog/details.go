package catalog

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// Details is what a model's files say beyond its [Model]. What they don't say is empty.
type Details struct {
	Files        []ModelFile // those that an engine reads, the one that identifies the model first
	ChatTemplate string
	License      License
	Author       string // or organization
	QuantizedBy  string
	Source       string // an http(s) URL of its publisher
	BaseModel    string // an http(s) URL of what it was made from

	Metadata map[string]any // numbers, booleans and short texts of a GGUF file's header, by their keys
}

// ModelFile is a file of a model.
type ModelFile struct {
	Path string // absolute if the catalog's roots are
	Size int64  // in bytes
	Role string // "model", or "projector"
}

// License is what a model's file says of its license.
type License struct {
	ID   string // such as "apache-2.0"
	Name string
	URL  string
}

// maxDetail bounds each text of Details except the template, in bytes.
const maxDetail = 1 << 10

// ReadDetails reads a model's files. It reads the whole header, so it takes milliseconds. The error says why the files can't be used.
func ReadDetails(m *Model) (Details, error) {
	if m.Err != nil {
		return Details{}, m.Err
	}
	if m.Format == FormatMLX {
		return mlxDetails(m)
	}
	d := Details{Files: filesOf(m)}
	if m.Format != FormatGGUF {
		return d, nil
	}
	f, err := parse(m.Path, m.SizeBytes)
	if err != nil {
		return Details{}, fmt.Errorf("reading %s: %w", m.Key, err)
	}
	d.ChatTemplate = cmp.Or(text(f, "tokenizer.chat_template"), text(f, "tokenizer.chat_template.tool_use"))
	d.License = License{
		ID: detail(f, "general.license"), Name: detail(f, "general.license.name"), URL: webAddress(detail(f, "general.license.link")),
	}
	d.Author = cmp.Or(detail(f, "general.organization"), detail(f, "general.author"))
	d.QuantizedBy = detail(f, "general.quantized_by")
	d.Source = cmp.Or(webAddress(detail(f, "general.repo_url")), webAddress(detail(f, "general.url")),
		webAddress(detail(f, "general.source.repo_url")), webAddress(detail(f, "general.source.url")))
	d.BaseModel = webAddress(detail(f, "general.base_model.0.repo_url"))
	d.Metadata = singleValues(f)
	return d, nil
}

// maxMetadata bounds the number of entries of Details.Metadata.
const maxMetadata = 1 << 10

// singleValues returns the entries of a header that are single values. Infinite numbers, which JSON doesn't have, are left out.
func singleValues(f *gguf.GGUFFile) map[string]any {
	all := map[string]any{}
	for _, kv := range f.Header.MetadataKV {
		if len(all) == maxMetadata {
			break
		}
		switch v := kv.Value.(type) {
		case string:
			if len(v) <= maxDetail {
				all[kv.Key] = detail(f, kv.Key)
			}
		case float32:
			if x := float64(v); !math.IsInf(x, 0) && !math.IsNaN(x) {
				all[kv.Key] = v
			}
		case float64:
			if !math.IsInf(v, 0) && !math.IsNaN(v) {
				all[kv.Key] = v
			}
		case bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64:
			all[kv.Key] = v
		}
	}
	return all
}

func filesOf(m *Model) []ModelFile {
	all := []ModelFile{{Path: m.Path, Role: "model"}}
	for _, path := range filename.OtherParts(m.Path) {
		all = append(all, ModelFile{Path: path, Role: "model"})
	}
	if m.Projector != "" {
		all = append(all, ModelFile{Path: m.Projector, Role: "projector"})
	}
	return measured(all)
}

func measured(all []ModelFile) []ModelFile {
	for i := range all {
		if info, err := os.Stat(all[i].Path); err == nil {
			all[i].Size = info.Size()
		} else {
			all[i].Path = ""
		}
	}
	return slices.DeleteFunc(all, func(f ModelFile) bool { return f.Path == "" })
}

// licenseLine is the license in a model card's description of itself.
var licenseLine = regexp.MustCompile(`(?m)^license:[ \t]*["']?([A-Za-z0-9.+_-]+)["']?[ \t]*\r?$`)

func mlxDetails(m *Model) (Details, error) {
	entries, err := os.ReadDir(m.Path)
	if err != nil {
		return Details{}, fmt.Errorf("reading %s: %w", m.Key, err)
	}
	var d Details
	for _, e := range entries {
		if !e.IsDir() && (mlx.IsFile(e.Name()) || strings.HasSuffix(e.Name(), ".json")) && e.Name() != mlx.CardFile {
			d.Files = append(d.Files, ModelFile{Path: filepath.Join(m.Path, e.Name()), Role: "model"})
		}
	}
	d.Files = measured(d.Files)
	slices.SortStableFunc(d.Files, func(a, b ModelFile) int { return cmp.Compare(b.Size, a.Size) })
	if t := mlx.ReadTokenizer(m.Path); t.Text != mlx.PythonTemplate {
		d.ChatTemplate = t.Text
	}
	if card, err := boundedfile.Read(filepath.Join(m.Path, mlx.CardFile), mlx.MaxCard); err == nil {
		front, _, _ := strings.Cut(strings.TrimPrefix(string(card), "---"), "\n---")
		if found := licenseLine.FindStringSubmatch(front); found != nil && strings.HasPrefix(string(card), "---") {
			d.License.ID = found[1]
		}
	}
	return d, nil
}

// detail returns a short text of a header, without what a terminal would take for commands.
func detail(f *gguf.GGUFFile, key string) string {
	value := text(f, key)
	if len(value) > maxDetail {
		value = strings.ToValidUTF8(value[:maxDetail], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if filename.IsInvisible(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(value))
}

func webAddress(s string) string {
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return s
}
