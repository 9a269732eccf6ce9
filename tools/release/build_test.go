package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found returns what the group of a pattern matches in a file.
func found(t *testing.T, file, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if m == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	return m[1]
}

// Make, the release and the image build the same program, with the same Go.
func TestBuild_IsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, file, pattern, want string }{
		{"tags", "../../Makefile", `(?m)^TAGS\s*:= (\S+)$`, buildTags},
		{"tags", "../../Dockerfile", `-tags (\S+)`, buildTags},
		{"flags of the linker", "../../Makefile", `(?m)^LDFLAGS\s*:= (.*)=\$\(VERSION\)$`, "-s -w -X " + versionField},
		{"flags of the linker", "../../Dockerfile", `-ldflags "(.*)=\$\{VERSION\}"`, "-s -w -X " + versionField},
		{"Go", "../../Dockerfile", `ARG GO_VERSION=(\S+)`, found(t, "../../go.mod", `(?m)^go (\S+)$`)},
	} {
		if got := found(t, c.file, c.pattern); got != c.want {
			t.Errorf("%s: the %s are %q, and elsewhere %q", c.file, c.what, got, c.want)
		}
	}
	for _, file := range []string{"../../Makefile", "../../Dockerfile"} {
		if text := read(t, file); !strings.Contains(text, "go build -trimpath -buildvcs=false ") {
			t.Errorf("%s builds with other flags", file)
		}
	}
}

// The builder of the image is sent every package of the program.
func TestBuild_TheImageHasAllPackages(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", buildTags, "./cmd/lmcaddy")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	sent := read(t, "../../.dockerignore")
	for path := range strings.FieldsSeq(string(out)) {
		below, ours := strings.CutPrefix(path, "github.com/lmcaddy/lmcaddy/")
		top, _, _ := strings.Cut(below, "/")
		if ours && !regexp.MustCompile("(?m)^!"+top+"(/.*)?$").MatchString(sent) {
			t.Errorf(".dockerignore leaves out %s", top)
		}
	}
}

func TestParseTargets(t *testing.T) {
	t.Parallel()
	if all, err := parseTargets(""); err != nil || len(all) != 6 {
		t.Errorf("%v, %v", all, err)
	}
	if some, err := parseTargets("linux/amd64,darwin/arm64"); err != nil || len(some) != 2 || some[1].String() != "darwin/arm64" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := parseTargets("plan9/arm"); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("a target that doesn't exist: %v", err)
	}
}
