package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// manifests are the files that other package managers install the archives from. Their templates are in packaging. They name the address of
// each archive, so there are none if it isn't known where these are published.
var manifests = []string{"homebrew/lmcaddy.rb", "scoop/lmcaddy.json", "winget/lmcaddy.yaml"}

// installers are the scripts that install the archives. They are published as they are.
var installers = []string{"install.ps1", "install.sh"}

func (r *release) writeInstallers() error {
	for _, name := range installers {
		text, err := os.ReadFile(filepath.Join(r.source, "packaging", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.output, name), text, 0o644); err != nil { //nolint:gosec // to be published
			return err
		}
		fmt.Println(" ", name)
	}
	return nil
}

// writeManifests fills in the manifests whose archives were built.
func (r *release) writeManifests() error {
	if r.published == "" {
		fmt.Println("  no manifests: -published says where the files will be")
		return nil
	}
	for _, name := range manifests {
		text, err := os.ReadFile(filepath.Join(r.source, "packaging", filepath.FromSlash(name)+".tmpl"))
		if err != nil {
			return err
		}
		filled, complete, err := r.fill(name, string(text))
		switch {
		case err != nil:
			return err
		case !complete:
			fmt.Printf("  no %s: it names targets that weren't built\n", name)
			continue
		}
		file := filepath.Join(r.output, filepath.Base(name))
		if err := os.WriteFile(file, filled, 0o644); err != nil { //nolint:gosec // to be published
			return err
		}
		fmt.Println(" ", filepath.Base(file))
	}
	return nil
}

// fill executes a template. It reports false if an archive is missing.
func (r *release) fill(name, text string) (filled []byte, complete bool, err error) {
	complete = true
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"url": func(goos, goarch string) string {
			return r.published + "/" + r.archiveName(target{goos, goarch})
		},
		"folder": func(goos, goarch string) string { return r.archiveFolder(target{goos, goarch}) },
		"sha256": func(goos, goarch string) (string, error) {
			sum, err := sumOf(filepath.Join(r.output, r.archiveName(target{goos, goarch})))
			if os.IsNotExist(err) {
				complete = false
				return "", nil
			}
			return sum, err
		},
	}).Parse(text)
	if err != nil {
		return nil, false, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]string{"Version": r.version.number(), "Published": r.published})
	return out.Bytes(), complete, err
}
