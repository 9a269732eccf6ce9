package hub

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hubsOf returns the public hub, a mirror below a path, and a hub on this machine.
func hubsOf(t testing.TB, more ...Config) *hubs {
	t.Helper()
	all, err := newHubs(append(more, Config{URL: "https://mirror.example/hf/"}, Config{URL: "http://127.0.0.1:99"}))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParse(t *testing.T) {
	t.Parallel()
	const hf = "https://huggingface.co"
	for model, want := range map[string]string{ // hub repo@revision:file folder
		"qwen/qwen3-4b":                  "https://mirror.example/hf Qwen/Qwen3-4B-GGUF@: qwen/qwen3-4b",
		"Qwen/Qwen3-4B":                  "https://mirror.example/hf Qwen/Qwen3-4B-GGUF@: qwen/qwen3-4b",
		"qwen3-4b":                       "https://mirror.example/hf Qwen/Qwen3-4B-GGUF@: qwen/qwen3-4b",
		"qwen3-4b@q8_0":                  "https://mirror.example/hf Qwen/Qwen3-4B-GGUF@: qwen/qwen3-4b",
		"Acme/Tiny-GGUF@Q8_0":            "https://mirror.example/hf Acme/Tiny-GGUF@: Acme/Tiny-GGUF",
		"Acme/Tiny-GGUF":                 "https://mirror.example/hf Acme/Tiny-GGUF@: Acme/Tiny-GGUF",
		" Acme/Tiny-GGUF ":               "https://mirror.example/hf Acme/Tiny-GGUF@: Acme/Tiny-GGUF",
		hf + "/a/b":                      hf + " a/b@: a/b",
		hf + "/a/b/":                     hf + " a/b@: a/b",
		"https://hf.co/a/b":              hf + " a/b@: a/b",
		hf + "/a/b?x=y#z":                hf + " a/b@: a/b",
		hf + ":443/a/b":                  hf + " a/b@: a/b",
		hf + "/a/b/tree/main":            hf + " a/b@: a/b",
		hf + "/a/b/tree/v1.0":            hf + " a/b@v1.0: a/b-v1.0",
		hf + "/a/b/tree/main/Q4_K_M":     hf + " a/b@:Q4_K_M/ a/b",
		hf + "/a/b/tree/refs%2Fpr%2F3":   hf + " a/b@refs/pr/3: a/b-refs-pr-3",
		hf + "/a/b/tree/refs/pr/3":       hf + " a/b@refs/pr/3: a/b-refs-pr-3",
		hf + "/a/b/blob/main/x%20y.gguf": hf + " a/b@:x y.gguf a/b",
		hf + "/a/b/resolve/main/q/x.gguf?download=true": hf + " a/b@:q/x.gguf a/b",
		"https://mirror.example/hf/a/b":                 "https://mirror.example/hf a/b@: a/b",
		"http://127.0.0.1:99/a/b":                       "http://127.0.0.1:99 a/b@: a/b",
	} {
		r, err := hubsOf(t).parse(model)
		if err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		file := r.File
		if r.Dir != "" {
			file = r.Dir + "/"
		}
		if got := r.Hub.String() + " " + r.Repo + "@" + r.Revision + ":" + file + " " + r.Folder; got != want {
			t.Errorf("%s:\n got %s\nwant %s", model, got, want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	const hf = "https://huggingface.co"
	for model, want := range map[string]struct {
		kind Kind
		text string
	}{
		"":                                    {Invalid, `"model" is required`},
		"no-such-model":                       {ModelNotFound, "The catalog has no model"},
		"a/b/c":                               {ModelNotFound, "The catalog has no model"},
		"../b":                                {ModelNotFound, "The catalog has no model"},
		"a/..":                                {ModelNotFound, "The catalog has no model"},
		"a/b@":                                {Invalid, "one quantization"},
		"a/b@q4@q8":                           {Invalid, "one quantization"},
		"a@b/c":                               {Invalid, "one quantization"},
		"a\x00b/c":                            {Invalid, "control characters"},
		strings.Repeat("a", 3000):             {Invalid, "too long"},
		"http://huggingface.co/a/b":           {Invalid, "only https"},
		"ftp://huggingface.co/a/b":            {Invalid, "only https"},
		"https://u:p@huggingface.co/a/b":      {Invalid, "leave it out"},
		"https://elsewhere.example/a/b":       {Invalid, "no hub that is known here"},
		"http://127.0.0.1:98/a/b":             {Invalid, "no hub that is known here"},
		"https://mirror.example/a/b":          {Invalid, "no hub that is known here"},
		"https://huggingface.co.evil.com/a/b": {Invalid, "no hub that is known here"},
		hf:                                    {Invalid, "isn't the URL of a model"},
		hf + "/a":                             {Invalid, "isn't the URL of a model"},
		hf + "/datasets/a/b":                  {Invalid, "isn't the URL of a model"},
		hf + "/a/..":                          {Invalid, "isn't the URL of a model"},
		hf + "/a/%2e%2e":                      {Invalid, "isn't the URL of a model"},
		hf + "/a/b%2Fc":                       {Invalid, "isn't the URL of a model"},
		hf + "/a/b/discussions/1":             {Invalid, "isn't the URL of a model"},
		hf + "/a/b/tree":                      {Invalid, "isn't the URL of a model"},
		hf + "/a/b/blob/main":                 {Invalid, "isn't the URL of a model"},
		hf + "/a/b/tree/..":                   {Invalid, "isn't the URL of a model"},
		hf + "/a/b/resolve/main/..%2F..%2Fx":  {Invalid, "isn't the URL of a model"},
		"https://%zz/a/b":                     {Invalid, "can't be read"},
	} {
		r, err := hubsOf(t).parse(model)
		if err == nil || kindOf(err) != want.kind || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: %+v, kind %d: %v", model, r, kindOf(err), err)
		}
		if e := AsError(err); e.Param != "model" {
			t.Errorf("%q: the error is about %q", model, e.Param)
		}
	}
}

// TestParse_AMirrorStandsIn for the public hub, unless that is configured as well.
func TestParse_AMirrorStandsIn(t *testing.T) {
	t.Parallel()
	const model = "https://huggingface.co/a/b"
	mirror := Config{URL: "https://other.example", Mirror: true}
	if r, err := hubsOf(t, mirror).parse(model); err != nil || r.Hub.String() != mirror.URL {
		t.Errorf("%v, %v", r.Hub, err)
	}
	if r, err := hubsOf(t, mirror, Config{URL: PublicHub, Token: "x"}).parse(model); err != nil || r.Hub.String() != PublicHub {
		t.Errorf("%v, %v", r.Hub, err)
	}
}

// TestWellKnown_IsSound checks the built-in list.
func TestWellKnown_IsSound(t *testing.T) {
	t.Parallel()
	ids, bare := map[string]bool{}, map[string]bool{}
	for _, e := range WellKnown() {
		publisher, name, _ := strings.Cut(e.ID, "/")
		p, r, _ := strings.Cut(e.Repo, "/")
		if CheckRepo(publisher, name) != nil || CheckRepo(p, r) != nil || e.ID != strings.ToLower(e.ID) || e.Type != "llm" &&
			e.Type != "embedding" ||
			e.MLX != "" && !strings.HasPrefix(e.MLX, "mlx-community/") {
			t.Errorf("%+v", e)
		}
		if ids[e.ID] || bare[name] {
			t.Errorf("%s is there twice", e.ID)
		}
		ids[e.ID], bare[name] = true, true
	}
	if n := len(ids); n < 20 {
		t.Errorf("only %d", n)
	}
}

// TestSameModel_InBothFormats: each repository of an identifier means the same model.
func TestSameModel_InBothFormats(t *testing.T) {
	t.Parallel()
	all := []string{"qwen/qwen3-4b", "Qwen/Qwen3-4B-GGUF", "mlx-community/Qwen3-4B-4bit"}
	if got := SameModel("Qwen3-4B"); !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	for _, repo := range all[1:] {
		if got := SameModel(repo); !slices.Equal(got, all[:1]) {
			t.Errorf("%s: %v, want %v", repo, got, all[:1])
		}
	}
}

// FuzzLocalPath: accepted paths stay below the folder, on this system and on Windows.
func FuzzLocalPath(f *testing.F) {
	for _, s := range evil {
		f.Add(s)
	}
	deviceOrWorse := regexp.MustCompile(`(?i)(^|/)(con|nul|aux|prn|com\d|lpt\d)(\.[^/]*)?(/|$)|[\\:*?"<>|\x00-\x1f\x7f]|[. ](/|$)`)
	f.Fuzz(func(t *testing.T, name string) {
		local, err := LocalPath(name)
		if err != nil {
			return
		}
		rel, err := filepath.Rel("/base", filepath.Join("/base", local))
		if err != nil || !filepath.IsLocal(local) || rel == "." || filepath.IsAbs(local) || filepath.Clean(local) != local {
			t.Errorf("%q becomes %q", name, local)
		}
		if deviceOrWorse.MatchString(name) {
			t.Errorf("%q is accepted", name)
		}
	})
}

// FuzzParse: every accepted name is a repository of a known hub, with a folder below the models folder.
func FuzzParse(f *testing.F) {
	for _, s := range append([]string{
		"qwen3-4b", "a/b", "https://huggingface.co/a/b/tree/refs%2Fpr%2F1/x",
		"https://hf.co/a/b/blob/main/x.gguf", "http://127.0.0.1:99/a/b",
	}, evil...) {
		f.Add(s)
	}
	known := hubsOf(f)
	f.Fuzz(func(t *testing.T, model string) {
		r, err := known.parse(model)
		if err != nil {
			return
		}
		if local, err := LocalPath(r.Folder); err != nil || strings.Count(local, string(os.PathSeparator)) != 1 {
			t.Errorf("%q goes to %q: %v", model, r.Folder, err)
		}
		address := r.Hub.Resolve(r.Repo, cmp.Or(r.Revision, defaultRevision), r.File)
		u, err := url.Parse(address)
		if err != nil || u.Host != r.Hub.Base.Host || strings.Contains(u.EscapedPath(), "//") && r.File != "" {
			t.Errorf("%q is fetched from %s: %v", model, address, err)
		}
	})
}

// FuzzVariants: no name from a hub leads to a panic.
func FuzzVariants(f *testing.F) {
	for _, s := range []string{"Qwen3-4B-Q4_K_M.gguf", "mmproj-Q8_0.gguf", "a-00001-of-00002.gguf", "Q4_0-Q4_0.gguf"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, name string) {
		BitsOf(name)
		variants([]RemoteFile{{Path: name}, {Path: name + ".gguf"}})
	})
}

var evil = []string{
	"a.gguf", "q/a.gguf", "../a", "a/../b", "/a", "//a", "a//b", `a\b`, `..\a`, "C:a", "C:/a", "a/", ".", "..", "", "con", "CON.gguf", "nul ", "a/COM1.txt",
	"lpt¹.x", "a.", "a ", " a", "a\x00b", "a\nb", "a\u202eb", "\xff", "a:b", "a|b", "a*", "x.part", "x.PART.json", "ab\u2028", strings.Repeat("a", 250), "~", "ü/ß",
}
