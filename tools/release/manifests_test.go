package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The manifests name archives that exist, with their checksums.
func TestManifests(t *testing.T) {
	t.Parallel()
	r := &release{version: "v1.2.3", source: "../..", output: t.TempDir(), published: "https://files.example/lmcaddy"}
	if err := r.writeManifests(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(r.output); err != nil || len(files) != 0 {
		t.Fatalf("%v, %v are written without archives", files, err)
	}
	sums := map[string]string{}
	for _, target := range allTargets {
		name := r.archiveName(target)
		if err := os.WriteFile(filepath.Join(r.output, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		sums["https://files.example/lmcaddy/"+name] = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
	}
	unpublished := *r
	unpublished.published = ""
	if err := unpublished.writeManifests(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.output, "lmcaddy.rb")); !os.IsNotExist(err) {
		t.Errorf("manifests name an address that isn't known: %v", err)
	}
	if err := r.writeManifests(); err != nil {
		t.Fatal(err)
	}
	formula := read(t, filepath.Join(r.output, "lmcaddy.rb"))
	pairs := regexp.MustCompile(`url "(.*)"\s+sha256 "(.*)"`).FindAllStringSubmatch(formula, -1)
	if len(pairs) != 4 || !strings.Contains(formula, `version "1.2.3"`) {
		t.Errorf("the formula has %d archives:\n%s", len(pairs), formula)
	}
	for _, p := range pairs {
		if sums[p[1]] != p[2] {
			t.Errorf("%s has the checksum %q, not %q", p[1], sums[p[1]], p[2])
		}
	}
	var scoop struct {
		Version      string
		Architecture map[string]struct{ URL, Hash string }
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(r.output, "lmcaddy.json"))), &scoop); err != nil {
		t.Fatal(err)
	}
	if len(scoop.Architecture) != 2 || scoop.Version != "1.2.3" {
		t.Errorf("%+v", scoop)
	}
	for name, a := range scoop.Architecture {
		if sums[a.URL] == "" || sums[a.URL] != a.Hash {
			t.Errorf("%s: %s has the checksum %q, not %q", name, a.URL, sums[a.URL], a.Hash)
		}
	}
	var winget struct {
		PackageVersion string `yaml:"PackageVersion"`
		Installers     []struct {
			InstallerURL    string `yaml:"InstallerUrl"`
			InstallerSHA256 string `yaml:"InstallerSha256"`
			Files           []struct {
				Path string `yaml:"RelativeFilePath"`
			} `yaml:"NestedInstallerFiles"`
		} `yaml:"Installers"`
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(r.output, "lmcaddy.yaml"))), &winget); err != nil {
		t.Fatal(err)
	}
	if len(winget.Installers) != 2 || winget.PackageVersion != "1.2.3" {
		t.Errorf("%+v", winget)
	}
	for i, in := range winget.Installers {
		if sums[in.InstallerURL] == "" || sums[in.InstallerURL] != in.InstallerSHA256 {
			t.Errorf("%s has the checksum %q, not %q", in.InstallerURL, sums[in.InstallerURL], in.InstallerSHA256)
		}
		if want := r.archiveFolder(target{"windows", []string{"amd64", "arm64"}[i]}) + `\lmcaddy.exe`; in.Files[0].Path != want {
			t.Errorf("the program is %s, not %s", in.Files[0].Path, want)
		}
	}
}
