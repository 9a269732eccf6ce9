package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ described, number, forPackages string }{
		{"v1.2.3", "1.2.3", "1.2.3"},
		{"v1.2.3-rc.1", "1.2.3-rc.1", "1.2.3~rc.1"},
		{"v1.2.3-4-g0123abc", "1.2.3-4-g0123abc", "1.2.3+4.g0123abc"},
		{"v1.2.3-rc.1-4-g0123abc-dirty", "1.2.3-rc.1-4-g0123abc-dirty", "1.2.3~rc.1+4.g0123abc+dirty"},
		{"0123abc", "0.0.0-git.0123abc", "0.0.0~git.0123abc"},
		{"0123abc-dirty", "0.0.0-git.0123abc-dirty", "0.0.0~git.0123abc+dirty"},
		{"vanilla", "0.0.0-git.vanilla", "0.0.0~git.vanilla"},
	} {
		t.Run(c.described, func(t *testing.T) {
			t.Parallel()
			v := version(c.described)
			if v.number() != c.number || v.forPackages() != c.forPackages {
				t.Errorf("%s and %s, not %s and %s", v.number(), v.forPackages(), c.number, c.forPackages)
			}
		})
	}
}

// A release of anything but a commit says so.
func TestDescribe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	write("a.go", "package a")
	write(".gitignore", "dist\n")
	git("add", ".")
	git("commit", "--quiet", "--no-gpg-sign", "--message", "a")
	git("tag", "v1.2.3")
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a tagged commit", func() {}, "v1.2.3"},
		{"with files that git ignores", func() { write("dist", "") }, "v1.2.3"},
		{"with a further file", func() { write("b.go", "package a") }, "v1.2.3-dirty"},
		{"a later commit", func() { git("add", "."); git("commit", "--quiet", "--no-gpg-sign", "--message", "b") }, "v1.2.3-1-g"},
		{"with a changed file", func() { write("b.go", "package b") }, "-dirty"},
	} {
		step.do()
		v, err := describe(t.Context(), dir)
		if err != nil || !strings.Contains(string(v), step.want) || strings.HasSuffix(string(v), "-dirty") != strings.HasSuffix(step.want, "-dirty") {
			t.Errorf("%s: %q, %v", step.what, v, err)
		}
	}
	if _, err := describe(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "give -version") {
		t.Errorf("without git: %v", err)
	}
}
