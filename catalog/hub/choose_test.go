package hub

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
)

const gib = 1 << 30

// tree returns files, given names and sizes in GiB: "a-Q4_K_M.gguf=4".
func tree(names ...string) []RemoteFile {
	var all []RemoteFile
	for _, n := range names {
		name, size, _ := strings.Cut(n, "=")
		f := RemoteFile{Path: name, Size: gib}
		if size != "" {
			f.Size = int64(len(size)) * gib // as many signs as GiB
		}
		all = append(all, f)
	}
	return all
}

func TestChoose(t *testing.T) {
	t.Parallel()
	split := []string{"q/m-Q4_K_M-00001-of-00002.gguf", "q/m-Q4_K_M-00002-of-00002.gguf", "m-Q8_0.gguf=xxx"}
	for name, c := range map[string]struct {
		files   []string
		wish    Wish
		memory  int64
		have    string   // a file that is on the disk
		want    []string // in order
		kind    Kind
		problem string
	}{
		"Q4_K_M before all":                      {files: []string{"m-Q8_0.gguf", "m-Q4_0.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-F16.gguf"}, want: []string{"m-Q4_K_M.gguf"}},
		"the nearest of four bits":               {files: []string{"m-Q3_K_M.gguf", "m-Q5_K_M.gguf", "m-IQ4_XS.gguf", "m-Q4_0.gguf"}, want: []string{"m-IQ4_XS.gguf"}},
		"MXFP4 is of four bits":                  {files: []string{"gpt-oss-20b-F16.gguf", "gpt-oss-20b-mxfp4.gguf"}, want: []string{"gpt-oss-20b-mxfp4.gguf"}},
		"more than four bits, the fewest":        {files: []string{"m-Q8_0.gguf", "m-Q5_0.gguf", "m-Q5_K_M.gguf", "m-F16.gguf", "m-Q3_K_M.gguf"}, want: []string{"m-Q5_K_M.gguf"}},
		"fewer than four bits, the most":         {files: []string{"m-Q2_K.gguf", "m-IQ3_M.gguf", "m-IQ1_S.gguf"}, want: []string{"m-IQ3_M.gguf"}},
		"one of a name that tells nothing":       {files: []string{"model.gguf"}, want: []string{"model.gguf"}},
		"what fits":                              {files: []string{"m-Q4_K_M.gguf=xxxx", "m-Q3_K_M.gguf=xxx", "m-Q2_K.gguf=xx"}, memory: 4 * gib, want: []string{"m-Q3_K_M.gguf"}},
		"what fits, with its projector":          {files: []string{"m-Q4_K_M.gguf=xxxx", "m-Q3_K_M.gguf=xxx", "m-Q2_K.gguf=xx", "mmproj-F16.gguf"}, memory: 4 * gib, want: []string{"mmproj-F16.gguf", "m-Q2_K.gguf"}},
		"nothing fits":                           {files: []string{"m-Q4_K_M.gguf=xxxx", "m-Q3_K_M.gguf=xxx"}, memory: gib, kind: TooLarge, problem: "There are: Q4_K_M (4.3 GB), Q3_K_M (3.2 GB)"},
		"what is there already":                  {files: []string{"m-Q4_K_M.gguf", "m-Q8_0.gguf"}, have: "m-Q8_0.gguf", want: []string{"m-Q8_0.gguf"}},
		"all parts, the first one last":          {files: split, want: []string{"q/m-Q4_K_M-00002-of-00002.gguf", "q/m-Q4_K_M-00001-of-00002.gguf"}},
		"a whole file beside its parts":          {files: append([]string{"m-Q4_K_M.gguf"}, "m-Q4_K_M-00001-of-00002.gguf"), want: []string{"m-Q4_K_M.gguf"}},
		"by quantization":                        {files: split, wish: Wish{Quantization: "q8_0"}, want: []string{"m-Q8_0.gguf"}},
		"by quantization, in another spelling":   {files: split, wish: Wish{Quantization: " q4-k-m "}, want: []string{"q/m-Q4_K_M-00002-of-00002.gguf", "q/m-Q4_K_M-00001-of-00002.gguf"}},
		"by quantization, whatever fits":         {files: []string{"m-Q4_K_M.gguf=xxxx"}, wish: Wish{Quantization: "Q4_K_M"}, memory: 1, want: []string{"m-Q4_K_M.gguf"}},
		"FP16 is F16":                            {files: []string{"m-fp16.gguf", "m-q4.gguf"}, wish: Wish{Quantization: "F16"}, want: []string{"m-fp16.gguf"}},
		"dynamic ones have their own name":       {files: []string{"m-UD-Q4_K_XL.gguf", "m-Q4_K_M.gguf"}, wish: Wish{Quantization: "Q4_K_XL"}, want: []string{"m-UD-Q4_K_XL.gguf"}},
		"exactly, where there are both":          {files: []string{"m-UD-Q4_K_M.gguf", "m-Q4_K_M.gguf"}, wish: Wish{Quantization: "Q4_K_M"}, want: []string{"m-Q4_K_M.gguf"}},
		"of one bit":                             {files: []string{"m-Q1_0.gguf", "m-TQ1_0.gguf", "m-Q2_0.gguf"}, wish: Wish{Quantization: "q1_0"}, want: []string{"m-Q1_0.gguf"}},
		"of four bits for NVIDIA's":              {files: []string{"m-Q8_0.gguf", "m-NVFP4.gguf"}, want: []string{"m-NVFP4.gguf"}},
		"MXFP4 of a mixture of experts":          {files: []string{"m-Q8_0.gguf", "m-MXFP4_MOE.gguf"}, wish: Wish{Quantization: "mxfp4"}, want: []string{"m-MXFP4_MOE.gguf"}},
		"an unknown quantization":                {files: []string{"m-Q4_K_M.gguf", "m-Q8_0.gguf=xx"}, wish: Wish{Quantization: "Q6_K"}, kind: Invalid, problem: `has no quantization "Q6_K". There are: Q4_K_M (1.1 GB), Q8_0 (2.1 GB)`},
		"several models of one":                  {files: []string{"a-Q4_0.gguf", "b-Q4_0.gguf"}, wish: Wish{Quantization: "Q4_0"}, kind: Invalid, problem: "a-Q4_0.gguf, b-Q4_0.gguf. Give the URL of one of the files"},
		"by file":                                {files: split, wish: Wish{File: "m-Q8_0.gguf"}, want: []string{"m-Q8_0.gguf"}},
		"by one part":                            {files: split, wish: Wish{File: "q/m-Q4_K_M-00002-of-00002.gguf"}, want: []string{"q/m-Q4_K_M-00002-of-00002.gguf", "q/m-Q4_K_M-00001-of-00002.gguf"}},
		"by file and quantization that differ":   {files: split, wish: Wish{File: "m-Q8_0.gguf", Quantization: "F16"}, kind: Invalid, problem: "leave one of them out"},
		"by a file that isn't there":             {files: split, wish: Wish{File: "m.gguf"}, kind: ModelNotFound, problem: "no model in a file m.gguf"},
		"by the projector":                       {files: []string{"m-Q8_0.gguf", "mmproj-F16.gguf"}, wish: Wish{File: "mmproj-F16.gguf"}, kind: Invalid, problem: "is a projector"},
		"by folder":                              {files: []string{"a/m-Q4_K_M.gguf", "b/m-Q8_0.gguf"}, wish: Wish{Dir: "b"}, want: []string{"b/m-Q8_0.gguf"}},
		"the projector of 16 bits":               {files: []string{"m-Q4_0.gguf", "mmproj-Q8_0.gguf", "mmproj-F16.gguf=xx", "mmproj-BF16.gguf"}, want: []string{"mmproj-F16.gguf", "m-Q4_0.gguf"}},
		"the projector of that name":             {files: []string{"a-Q4_0.gguf", "mmproj-b-F16.gguf", "mmproj-a-Q8_0.gguf", "b-Q8_0.gguf"}, want: []string{"mmproj-a-Q8_0.gguf", "a-Q4_0.gguf"}},
		"the projector named at the end":         {files: []string{"a-Q4_0.gguf", "a.mmproj-f16.gguf", "b.mmproj-f16.gguf"}, want: []string{"a.mmproj-f16.gguf", "a-Q4_0.gguf"}},
		"no matrices, adapters and vocabularies": {files: []string{"imatrix.gguf", "m-lora-F16.gguf", "ggml-vocab-x.gguf", "m-Q8_0.gguf"}, want: []string{"m-Q8_0.gguf"}},
		"a drafter beside its model is no other": {files: []string{"mtp-m.gguf", "m-assistant-Q4_K_M.gguf", "MTP/m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-dflash.gguf"}, want: []string{"m-Q8_0.gguf"}},
		"by quantization, beside a drafter":      {files: []string{"m-draft-Q4_0.gguf", "m-Q4_0.gguf"}, wish: Wish{Quantization: "Q4_0"}, want: []string{"m-Q4_0.gguf"}},
		"a drafter in a repository of its own":   {files: []string{"m-DRAFT-0.5B-Q4_0.gguf", "m-DRAFT-0.5B-Q8_0.gguf"}, want: []string{"m-DRAFT-0.5B-Q4_0.gguf"}},
		"a drafter by its file":                  {files: []string{"mmproj-F16.gguf", "m-Q4_0.gguf", "MTP/m-Q4_0.gguf"}, wish: Wish{File: "MTP/m-Q4_0.gguf"}, want: []string{"MTP/m-Q4_0.gguf"}},
		"an adapter by its file":                 {files: []string{"m-Q4_0.gguf", "m-lora.gguf"}, wish: Wish{File: "m-lora.gguf"}, kind: Invalid, problem: "is no model, but a file for one (adapter)"},
		"parts are missing":                      {files: []string{"m-Q4_0-00001-of-00003.gguf", "m-Q4_0-00003-of-00003.gguf"}, kind: HubFailed, problem: "lacks parts of Q4_0"},
		"nothing at all":                         {files: []string{"README.md", "model.safetensors"}, kind: ModelNotFound, problem: "holds no model"},
		"safetensors beside GGUF":                {files: []string{"config.json", "model.safetensors", "m-Q8_0.gguf"}, want: []string{"m-Q8_0.gguf"}},
		"an MLX model":                           {files: []string{"config.json", "model.safetensors"}, want: []string{"model.safetensors", "config.json"}},
		"an MLX model that doesn't fit":          {files: []string{"config.json", "model.safetensors"}, memory: 1000, kind: TooLarge, problem: "don't fit"},
		"an MLX model of another quantization":   {files: []string{"config.json", "model.safetensors"}, wish: Wish{Quantization: "4bit"}, kind: Invalid, problem: "it is one model as a whole, 8bit"},
		"an MLX model of its quantization":       {files: []string{"config.json", "model.safetensors"}, wish: Wish{Quantization: "8-bit"}, want: []string{"model.safetensors", "config.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Machine{Memory: c.memory, Have: func(files []RemoteFile) bool {
				return c.have != "" && files[len(files)-1].Path == c.have
			}}
			got, err := Choose(Listing{Repo: "acme/m-8bit", Files: tree(c.files...)}, c.wish, m)
			if c.kind != 0 {
				if err == nil || kindOf(err) != c.kind || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("kind %d: %v", kindOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range got.Files {
				names = append(names, f.Path)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChoose_OnlyGGUFIsRun(t *testing.T) {
	t.Parallel()
	_, err := Choose(Listing{Repo: "a/b", Files: tree("config.json", "model.safetensors")}, Wish{}, Machine{formats: []catalog.Format{catalog.FormatGGUF}})
	if kindOf(err) != NotImplemented {
		t.Error(err)
	}
}

func TestChoose_GGUFIsNotRun(t *testing.T) {
	t.Parallel()
	m := Machine{formats: []catalog.Format{catalog.FormatMLX}}
	_, err := Choose(Listing{Repo: "a/b", Files: tree("b-Q4_K_M.gguf")}, Wish{}, m)
	if kindOf(err) != ModelNotFound || strings.Contains(err.Error(), "neither") {
		t.Error(err)
	}
	c, err := Choose(Listing{Repo: "a/b", Files: tree("b-Q4_K_M.gguf", "config.json", "model.safetensors")}, Wish{}, m)
	if err != nil || len(c.Files) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestChoose_OneOfTwoFormats: where a repository has both, MLX is chosen if it is preferred and sure.
func TestChoose_OneOfTwoFormats(t *testing.T) {
	t.Parallel()
	both := []string{"config.json", "model.safetensors", "m-Q4_K_M.gguf"}
	for name, tt := range map[string]struct {
		repo, library string
		files         []string
		wish          Wish
		m             Machine
		want          string // the last file
		problem       string
	}{
		"preferred":                {"a/m-MLX", "", both, Wish{}, Machine{prefers: catalog.FormatMLX}, "config.json", ""},
		"by what the hub says":     {"a/m", "mlx", both, Wish{}, Machine{prefers: catalog.FormatMLX}, "config.json", ""},
		"not preferred":            {"a/m-MLX", "mlx", both, Wish{}, Machine{}, "m-Q4_K_M.gguf", ""},
		"without an engine":        {"a/m-MLX", "mlx", both, Wish{}, Machine{prefers: catalog.FormatMLX, formats: []catalog.Format{catalog.FormatGGUF}}, "m-Q4_K_M.gguf", ""},
		"perhaps for another":      {"a/m", "", both, Wish{}, Machine{prefers: catalog.FormatMLX}, "m-Q4_K_M.gguf", ""},
		"a file":                   {"a/m-MLX", "", both, Wish{File: "m-Q4_K_M.gguf"}, Machine{prefers: catalog.FormatMLX}, "m-Q4_K_M.gguf", ""},
		"a quantization":           {"a/m-MLX-4bit", "", both, Wish{Quantization: "Q4_K_M"}, Machine{prefers: catalog.FormatMLX}, "m-Q4_K_M.gguf", ""},
		"its own quantization":     {"a/m-MLX-4bit", "", both, Wish{Quantization: "4bit"}, Machine{prefers: catalog.FormatMLX}, "config.json", ""},
		"too large":                {"a/m-MLX", "", []string{"config.json", "model.safetensors=xxxx", "m-Q4_K_M.gguf"}, Wish{}, Machine{prefers: catalog.FormatMLX, Memory: 2 * gib}, "m-Q4_K_M.gguf", ""},
		"for another library":      {"a/m", "transformers", both[:2], Wish{}, Machine{}, "", "its safetensors are for transformers, not for MLX"},
		"for another, by its tags": {"a/m", "mlx", both[:2], Wish{}, Machine{}, "config.json", ""},
		"for another, by its name": {"a/m-mlx", "transformers", both[:2], Wish{}, Machine{}, "config.json", ""},
		"adapters alone":           {"a/m-mlx", "", []string{"config.json", "adapters.safetensors"}, Wish{}, Machine{}, "", "holds no model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.m.Have = func([]RemoteFile) bool { return false }
			c, err := Choose(Listing{Repo: tt.repo, library: tt.library, Files: tree(tt.files...)}, tt.wish, tt.m)
			if tt.problem != "" {
				if kindOf(err) != ModelNotFound || !strings.Contains(err.Error(), tt.problem) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if last := c.Files[len(c.Files)-1].Path; last != tt.want {
				t.Errorf("%s, want %s", last, tt.want)
			}
		})
	}
}

func TestBitsOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"Q4_K_M": 4, "IQ2_XXS": 2, "UD-Q5_K_XL": 5, "F16": 16, "FP16": 16, "BF16": 16, "F32": 32, "MXFP4": 4, "NVFP4": 4, "TQ1_0": 1, "4bit": 4, "": 0, "odd": 0,
	} {
		if got := BitsOf(name); got != want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
