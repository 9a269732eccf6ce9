package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The list of a program, here of this test, has the modules that it was built from, with the checksums of go.sum and their
// licenses.
func TestWriteSBOM(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v1.2.3", date: date, source: filepath.Join("..", "..")}
	parts, err := r.partsOf(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	var serials []string
	for range 2 {
		to := filepath.Join(t.TempDir(), "sbom.json")
		if err := r.writeSBOM(program, info, parts, to); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		var bom cyclonedx.BOM
		if err := cyclonedx.NewBOMDecoder(f, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		matchesSchema(t, to)
		if got := bom.Metadata.Component; got.Name != "github.com/lmcaddy/lmcaddy" || got.Version != "v1.2.3" || bom.Metadata.Timestamp != "2026-11-23T01:02:04Z" {
			t.Errorf("it is of %+v, %s", got, bom.Metadata.Timestamp)
		}
		for name, license := range map[string]string{
			"std": "BSD-3-Clause", "github.com/CycloneDX/cyclonedx-go": "Apache-2.0", "github.com/google/licensecheck": "BSD-3-Clause",
		} {
			if !hasComponent(bom, name, license) {
				t.Errorf("it lacks %s with the license %s", name, license)
			}
		}
		if got := *bom.Dependencies; len(*got[0].Dependencies) != len(*bom.Components) {
			t.Errorf("the program needs %d of %d modules", len(*got[0].Dependencies), len(*bom.Components))
		}
		serials = append(serials, bom.SerialNumber)
	}
	if serials[0] != serials[1] {
		t.Errorf("the same program has two numbers: %q", serials)
	}
}

// matchesSchema fails if a list isn't what CycloneDX's schema allows.
func matchesSchema(t *testing.T, file string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(file string) any {
		t.Helper()
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		value, err := jsonschema.UnmarshalJSON(f)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	const base = "http://cyclonedx.org/schema/"
	schemas := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		if err := schemas.AddResource(base+name, parse(filepath.Join(strings.TrimSpace(string(out)), "schema", file))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := schemas.Compile(base + "bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(parse(file)); err != nil {
		t.Error(err)
	}
}

func hasComponent(bom cyclonedx.BOM, name, license string) bool {
	for _, c := range *bom.Components {
		if c.Name == name {
			return c.Version != "" && c.PackageURL != "" && (name == "std" || (c.Hashes != nil && len((*c.Hashes)[0].Value) == 64)) &&
				c.Licenses != nil && len(*c.Licenses) == 1 && (*c.Licenses)[0].License.ID == license
		}
	}
	return false
}

func TestPart_LicenseIDs(t *testing.T) {
	t.Parallel()
	apache := []byte(read(t, "../../LICENSE"))
	for _, c := range []struct {
		name string
		in   []license
		want string
	}{
		{"one", []license{{"LICENSE", apache}}, "Apache-2.0"},
		{"the same twice", []license{{"COPYING", apache}, {"LICENSE.md", apache}}, "Apache-2.0"},
		{"what isn't a license", []license{{"NOTICE", apache}, {"PATENTS", apache}}, ""},
		{"another text", []license{{"LICENSE", []byte("Do what you want.")}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := part{licenses: c.in}
			if got := strings.Join(p.licenseIDs(), " "); got != c.want {
				t.Errorf("%q", got)
			}
			if got := (*licensesOf(p))[0].License; got.ID == "" && got.Name != "see THIRD-PARTY-LICENSES.txt" {
				t.Errorf("%+v", got)
			}
		})
	}
}
