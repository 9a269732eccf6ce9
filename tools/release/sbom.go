package main

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // names by content, as RFC 4122 defines them
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the list of what a program contains. It is in CycloneDX's format, as JSON.
func (r *release) writeSBOM(binary string, info *buildinfo.BuildInfo, parts []part, to string) error {
	sum, err := sumOf(binary)
	if err != nil {
		return err
	}
	bom := r.components(info, parts, sum)
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return fmt.Errorf("writing the list of components: %w", err)
	}
	return os.WriteFile(to, text.Bytes(), 0o644) //nolint:gosec // to be published
}

// components returns the list for a program with a checksum.
func (r *release) components(info *buildinfo.BuildInfo, parts []part, sum string) *cyclonedx.BOM {
	program := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: string(r.version),
		PackageURL: packageURL(info.Main.Path, string(r.version)), BOMRef: packageURL(info.Main.Path, string(r.version)),
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
	}
	var modules []cyclonedx.Component
	for _, p := range parts {
		modules = append(modules, component(p))
	}
	var uses []string
	dependencies := []cyclonedx.Dependency{{Ref: program.BOMRef}}
	for _, m := range modules {
		uses = append(uses, m.BOMRef)
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: m.BOMRef})
	}
	dependencies[0].Dependencies = &uses
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serialNumber(sum)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: r.date.Format("2006-01-02T15:04:05Z"), Component: &program, Properties: properties(info.Settings),
	}
	bom.Components, bom.Dependencies = &modules, &dependencies
	return bom
}

// component describes a module. Its checksum is that of go.sum, which is SHA-256 over the sums of its files.
func component(p part) cyclonedx.Component {
	c := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: p.path, Version: p.version, Licenses: licensesOf(p),
		PackageURL: packageURL(p.path, p.version), BOMRef: packageURL(p.path, p.version), Scope: cyclonedx.ScopeRequired,
	}
	if p.path == standardLibrary {
		c.Description = "Go's standard library"
	}
	if encoded, ok := strings.CutPrefix(p.sum, "h1:"); ok {
		if digest, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
		}
	}
	return c
}

// licensesOf names the licenses that were found in a module. A text that isn't recognized is in the file of notices.
func licensesOf(p part) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, id := range p.licenseIDs() {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id, Acknowledgement: cyclonedx.LicenseAcknowledgementConcluded}})
	}
	if len(all) == 0 {
		all = cyclonedx.Licenses{{License: &cyclonedx.License{Name: "see " + noticesName}}}
	}
	return &all
}

// packageURL names a module as scanners of vulnerabilities do: https://github.com/package-url/purl-spec.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// properties are the settings of the build that make a difference.
func properties(settings []debug.BuildSetting) *[]cyclonedx.Property {
	var list []cyclonedx.Property
	for _, s := range settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-tags":
			list = append(list, cyclonedx.Property{Name: "lmcaddy:build:" + s.Key, Value: s.Value})
		}
	}
	return &list
}

// serialNumber is a UUID of the program's content (version 5), so that it is the same for the same program.
func serialNumber(sum string) string {
	digest := sha1.Sum([]byte("https://github.com/lmcaddy/lmcaddy#" + sum)) //nolint:gosec // a name
	id := digest[:16]
	id[6], id[8] = id[6]&0x0f|0x50, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
