package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog/model"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{
		"Pub/One-GGUF/a.gguf": f32,
		"pub/Two/a.gguf":      f32, "pub/Two/b.gguf": f16,
		"pub/same/a.gguf": f32, "other/same/a.gguf": f32,
		"pub/half/good.gguf": f32, "pub/half/broken.gguf": nil,
		"good/mixed/a.gguf": f32, "bad/mixed/a.gguf": nil,
		"pub/broken/a.gguf":    nil,
		"bad/lost/a.gguf":      nil,
		"pub/lost/a.gguf":      nil,
		"Flat @ file-f32.gguf": f32,
	})
	age(t, root, "pub/Two/a.gguf")
	known := []string{"good/mixed", "local/flat---file", "other/same", "pub/half", "pub/one", "pub/same", "pub/two@f16", "pub/two@f32"}
	tests := map[string]struct {
		name string
		want string
		err  *NotFoundError
	}{
		"key":                               {name: "pub/one", want: "pub/one"},
		"key in any case":                   {name: "PUB/One", want: "pub/one"},
		"key with space around":             {name: " pub/one\n", want: "pub/one"},
		"bare name":                         {name: "one", want: "pub/one"},
		"bare name in any case":             {name: "ONE", want: "pub/one"},
		"key with a quantization":           {name: "pub/two@f16", want: "pub/two@f16"},
		"quantization in any case":          {name: "Pub/Two@F32", want: "pub/two@f32"},
		"bare name with a quantization":     {name: "two@f32", want: "pub/two@f32"},
		"flat":                              {name: "flat---file", want: "local/flat---file"},
		"broken":                            {name: "pub/broken", want: "pub/broken"},
		"broken, bare":                      {name: "broken", want: "pub/broken"},
		"a broken variant":                  {name: "pub/half@broken", want: "pub/half@broken"},
		"a good one beside a broken":        {name: "pub/half", want: "pub/half"},
		"bare, a good one beside a broken":  {name: "half", want: "pub/half"},
		"bare, a broken one of another":     {name: "mixed", want: "good/mixed"},
		"repository of two":                 {name: "pub/two", want: "pub/two@f32"},
		"bare repository of two":            {name: "two", want: "pub/two@f32"},
		"a file's name of two":              {name: "pub/two@b", want: "pub/two@f16"},
		"bare name of two publishers":       {name: "Same", err: &NotFoundError{Name: "Same", Ambiguous: []string{"other/same", "pub/same"}}},
		"bare name of two broken":           {name: "lost", err: &NotFoundError{Name: "lost", Ambiguous: []string{"bad/lost", "pub/lost"}}},
		"unknown":                           {name: "pub/none", err: &NotFoundError{Name: "pub/none", Known: known}},
		"unknown quantization":              {name: "pub/two@q8_0", err: &NotFoundError{Name: "pub/two@q8_0", Known: known}},
		"quantization of a repo of one":     {name: "pub/one@F32", want: "pub/one"},
		"the same without the publisher":    {name: "one@f32", want: "pub/one"},
		"another quantization":              {name: "pub/one@q8_0", err: &NotFoundError{Name: "pub/one@q8_0", Known: known}},
		"only the publisher":                {name: "pub", err: &NotFoundError{Name: "pub", Known: known}},
		"the folder's name with its ending": {name: "pub/one-gguf", err: &NotFoundError{Name: "pub/one-gguf", Known: known}},
		"empty":                             {name: "", err: &NotFoundError{Known: known}},
		"out of the folder":                 {name: "../pub/one", err: &NotFoundError{Name: "../pub/one", Known: known}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := c.Lookup(t.Context(), tt.name)
			if m.Key != tt.want {
				t.Errorf("key %q, want %q", m.Key, tt.want)
			}
			var missing *NotFoundError
			if err != nil && !errors.As(err, &missing) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.err, missing); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLookup_AcrossRoots: if two roots have models with the same key, the second gets a variant.
func TestLookup_AcrossRoots(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	write(t, first, "p/same/x.gguf", f32)
	write(t, second, "p/same/x.gguf", f16)
	write(t, second, "p/other/x.gguf", f16)
	write(t, first, "q/other/x.gguf", f32)
	write(t, first, "p/other/x.gguf", f32)
	c, _ := catalogOf(t, nil)
	c.SetRoots([]string{first, second})
	for name, want := range map[string]string{
		"p/same": "p/same", "same": "p/same", "p/same@f16": "p/same@f16", "same@f16": "p/same@f16", "same@f32": "p/same", "other": "",
		"other@f16": "p/other@f16",
	} {
		m, err := c.Lookup(t.Context(), name)
		if m.Key != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, want %q; %v", name, m.Key, want, err)
		}
	}
}

// TestLookup_NamesStay: a name keeps its meaning when models of its repository that are farther from Q4_K_M are added or removed.
func TestLookup_NamesStay(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"pub/m/m-f16.gguf": f16})
	means := func(want string, names ...string) {
		t.Helper()
		for _, name := range names {
			if m, err := c.Lookup(t.Context(), name); err != nil || m.Key != want {
				t.Errorf("%s: %q, want %q; %v", name, m.Key, want, err)
			}
		}
	}
	first := []string{"pub/m", "m", "pub/m@f16", "m@f16", "pub/m@m-f16"}
	means("pub/m", first...)
	write(t, root, "pub/m/m-f32.gguf", f32)
	refresh(t, c)
	means("pub/m@f32", "pub/m@f32", "m@f32")
	means("pub/m@f16", first...)
	var missing *NotFoundError
	if _, err := c.LookupOnly(t.Context(), "pub/m"); !errors.As(err, &missing) || len(missing.Ambiguous) != 2 {
		t.Errorf("there is a choice: %v", err)
	}
	if m, err := c.LookupOnly(t.Context(), "m@F32"); err != nil || m.Key != "pub/m@f32" {
		t.Errorf("%q, %v", m.Key, err)
	}
	if err := os.Remove(filepath.Join(root, "pub", "m", "m-f16.gguf")); err != nil {
		t.Fatal(err)
	}
	refresh(t, c)
	means("pub/m", "pub/m", "m", "pub/m@f32", "m@f32")
	if m, err := c.LookupOnly(t.Context(), "pub/m"); err != nil || m.Key != "pub/m" || m.FullKey() != "pub/m@f32" {
		t.Errorf("%q, %q, %v", m.Key, m.FullKey(), err)
	}
}

// TestLookup_UsualQuantization: a name without a quantization means Q4_K_M or the nearest; of several equally near the oldest.
func TestLookup_UsualQuantization(t *testing.T) {
	t.Parallel()
	of := func(name string, bits float64, day int) Model {
		return Model{
			Key: "p/m@" + Normal(name), Quantization: model.Quantization{Name: name, BitsPerWeight: bits},
			Changed: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
		}
	}
	for want, models := range map[string][]Model{
		"p/m@q4_k_m": {of("F16", 16, 1), of("Q4_K_M", 5.1, 3), of("Q4_K_S", 4.8, 2)},
		"p/m@q5_k_m": {of("F16", 16, 1), of("Q5_K_M", 5.7, 3), of("Q2_K", 2.6, 2)},
		"p/m@mxfp4":  {of("MXFP4", 4.3, 1), of("IQ4", 4.3, 2)},
	} {
		if m, err := Among(models, "p/m"); err != nil || m.Key != want {
			t.Errorf("%q, want %q; %v", m.Key, want, err)
		}
	}
}

func refresh(t *testing.T, c *Catalog) {
	t.Helper()
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// age makes a file an hour older.
func age(t *testing.T, root, path string) {
	t.Helper()
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, filepath.FromSlash(path)), then, then); err != nil {
		t.Fatal(err)
	}
}

func TestNotFoundError(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*NotFoundError{
		`The model "x" is ambiguous: it may be a/x, b/x.`:                                                                                              {Name: "x", Ambiguous: []string{"a/x", "b/x"}},
		`The model "x" is not known. There are: a/y, b/z.`:                                                                                             {Name: "x", Known: []string{"a/y", "b/z"}},
		`The model "x" is not known, or this API token may not use it. There are: a/y.`:                                                                {Name: "x", Known: []string{"a/y"}, Limited: true},
		`The model "x" is not known, or this API token may not use it. There is none that it may use: ask for another token.`:                          {Name: "x", Limited: true},
		`The model "x" is not known, and there are no models at all: put GGUF files into the models folder, as models/<publisher>/<name>/<file>.gguf.`: {Name: "x"},
		`The model "b" is not known. There are: a/y, a/z, a/b-c, and 2 more.`:                                                                          {Name: "b", Known: []string{"a/x1234", "a/y", "a/b-c", "a/x123", "a/z"}},
		`The model "a\nb" is not known. There are: c/d.`:                                                                                               {Name: "a\nb", Known: []string{"c/d"}},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
