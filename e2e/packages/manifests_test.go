//go:build release

package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// formula is what a formula needs of Homebrew, which isn't for this platform's tests: it downloads and installs here.
const formula = `
require "fileutils"
class Pathname; def install(what); FileUtils.mkdir_p(to_s)
  case what
  when Hash then what.each { |from, name| FileUtils.cp(from, File.join(to_s, name)) }
  else Array(what).each { |from| FileUtils.cp(from, to_s) } end
end; end
class Formula
  class << self
    attr_reader :found, :tested
    %i[desc homepage license].each { |name| define_method(name) { |text| raise name.to_s if text.empty? } }
    def version(v = nil); @version = v || @version; end
    def on_macos; end
    def on_linux; yield; end
    def on_arm; end
    def on_intel; yield; end
    def url(u); (@found ||= {})[:url] = u; end
    def sha256(s); @found[:sha256] = s; end
    def service; end
    def test(&block); @tested = block; end
  end
  def prefix; Pathname.new(ENV.fetch("TO")); end
  def bin; prefix/"bin"; end
  def man8; prefix/"share/man/man8"; end
  def bash_completion; prefix/"etc/bash_completion.d"; end
  def fish_completion; prefix/"share/fish/vendor_completions.d"; end
  def zsh_completion; prefix/"share/zsh/site-functions"; end
  def version; self.class.version; end
  def shell_output(c); %x(#{c}); end
  def assert_match(want, got); raise "#{got} has no #{want}" unless got.include?(want); end
end
require "pathname"
load ARGV.fetch(0)
puts Lmcaddy.found[:url], Lmcaddy.found[:sha256]
Dir.chdir(ARGV.fetch(1)) { Lmcaddy.new.install }
f = Lmcaddy.new
f.instance_exec(&Lmcaddy.tested)
`

// TestAll makes a whole release twice, in different folders, and uses the manifests of other package managers.
func TestAll(t *testing.T) {
	nfpm := os.Getenv("LMCADDY_NFPM")
	dist := makeRelease(t, "v1.2.3", nil, "-nfpm", nfpm, "-published", "https://files.example/lmcaddy")
	t.Run("the same bytes twice", func(t *testing.T) {
		// One target, but with nothing of the first build: neither its folder nor what it has compiled.
		args := []string{"-nfpm", nfpm, "-targets", "linux/amd64"}
		first := makeRelease(t, "v1.2.3", nil, args...)
		sameFolders(t, first, makeRelease(t, "v1.2.3", []string{"GOCACHE=" + t.TempDir(), "TZ=Asia/Tokyo", "LANG=de_DE.UTF-8", "USER=other"}, args...))
	})
	t.Run("it is complete", func(t *testing.T) {
		for _, name := range []string{
			"lmcaddy_1.2.3_darwin_amd64.tar.gz", "lmcaddy_1.2.3_darwin_arm64.tar.gz", "lmcaddy_1.2.3_linux_amd64.tar.gz", "lmcaddy_1.2.3_linux_arm64.tar.gz",
			"lmcaddy_1.2.3_windows_amd64.zip", "lmcaddy_1.2.3_windows_arm64.zip", "lmcaddy_1.2.3_amd64.deb", "lmcaddy_1.2.3_arm64.deb",
			"lmcaddy-1.2.3-1.x86_64.rpm", "lmcaddy-1.2.3-1.aarch64.rpm", "lmcaddy.rb", "lmcaddy.json", "lmcaddy.yaml", "SHA256SUMS",
		} {
			if _, err := os.Stat(filepath.Join(dist, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("the formula installs", func(t *testing.T) {
		aptInstall(t, "ruby", "ruby")
		must(t, "ruby", "-c", filepath.Join(dist, "lmcaddy.rb"))
		work := t.TempDir()
		unpack(t, filepath.Join(dist, "lmcaddy_1.2.3_linux_amd64.tar.gz"), filepath.Join(work, "unpacked"))
		script := filepath.Join(work, "formula.rb")
		if err := os.WriteFile(script, []byte(formula), 0o600); err != nil {
			t.Fatal(err)
		}
		out := must(t, "env", "TO="+work, "ruby", script, filepath.Join(dist, "lmcaddy.rb"), filepath.Join(work, "unpacked"))
		sum, _, _ := strings.Cut(must(t, "sha256sum", filepath.Join(dist, "lmcaddy_1.2.3_linux_amd64.tar.gz")), " ")
		if want := "https://files.example/lmcaddy/lmcaddy_1.2.3_linux_amd64.tar.gz\n" + sum + "\n"; out != want {
			t.Errorf("it says %s, not %s", out, want)
		}
		for _, name := range []string{"bin/lmcaddy", "share/man/man8/lmcaddy.8", "etc/bash_completion.d/lmcaddy", "share/zsh/site-functions/_lmcaddy"} {
			if _, err := os.Stat(filepath.Join(work, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("Scoop's and winget's manifests name the archive's folder", func(t *testing.T) {
		manifest := contentOf(t, filepath.Join(dist, "lmcaddy.json"))
		aptInstall(t, "unzip", "unzip")
		list := must(t, "unzip", "-Z1", filepath.Join(dist, "lmcaddy_1.2.3_windows_amd64.zip"))
		if dir := gjson.Get(manifest, "architecture.64bit.extract_dir").Str; !strings.Contains(list, dir+"/lmcaddy.exe\n") {
			t.Errorf("the archive has no %s/lmcaddy.exe, but %s", dir, list)
		}
		if !strings.Contains(contentOf(t, filepath.Join(dist, "lmcaddy.yaml")), `RelativeFilePath: 'lmcaddy_1.2.3_windows_amd64\lmcaddy.exe'`) {
			t.Error("winget's manifest names another file")
		}
	})
	t.Run("each program is for its platform", func(t *testing.T) {
		for target, want := range map[string]string{
			"darwin_amd64": "Mach-O 64-bit x86_64 executable", "darwin_arm64": "Mach-O 64-bit arm64 executable",
			"linux_amd64": "ELF 64-bit LSB executable, x86-64", "linux_arm64": "ELF 64-bit LSB executable, ARM aarch64",
			"windows_amd64": "PE32+ executable (console) x86-64", "windows_arm64": "PE32+ executable (console) Aarch64",
		} {
			if got := kindOf(t, dist, target); !strings.Contains(got, want) {
				t.Errorf("%s: the program is %s, not %s", target, got, want)
			}
		}
	})
	t.Run("the packages for arm64 are", func(t *testing.T) {
		deb, to := filepath.Join(dist, "lmcaddy_1.2.3_arm64.deb"), t.TempDir()
		if got := must(t, "dpkg-deb", "--field", deb, "Architecture"); got != "arm64\n" {
			t.Errorf("it says %s", got)
		}
		must(t, "dpkg-deb", "--extract", deb, to)
		if got := must(t, "file", filepath.Join(to, "usr", "bin", "lmcaddy")); !strings.Contains(got, "ARM aarch64") {
			t.Errorf("the program is %s", got)
		}
		lintian(t, deb)
		aptInstall(t, "rpm", "rpm")
		if got := must(t, "rpm", "--query", "--queryformat", "%{ARCH}", "--package", filepath.Join(dist, "lmcaddy-1.2.3-1.aarch64.rpm")); got != "aarch64" {
			t.Errorf("it says %s", got)
		}
	})
}

// kindOf says of which kind the program in a target's archive is.
func kindOf(t *testing.T, dist, target string) string {
	t.Helper()
	aptInstall(t, "file", "file")
	folder, to := "lmcaddy_1.2.3_"+target, t.TempDir()
	archive := filepath.Join(dist, folder+".tar.gz")
	if _, err := os.Stat(archive); err == nil {
		unpack(t, archive, filepath.Join(to, folder))
	} else {
		aptInstall(t, "unzip", "unzip")
		must(t, "unzip", "-q", filepath.Join(dist, folder+".zip"), "-d", to)
	}
	found, err := filepath.Glob(filepath.Join(to, folder, "lmcaddy*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s has the programs %q, %v", folder, found, err)
	}
	return must(t, "file", found[0])
}

// sameFolders fails if two folders haven't the same files.
func sameFolders(t *testing.T, a, b string) {
	t.Helper()
	names := func(dir string) (all []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	if x, y := names(a), names(b); fmt.Sprint(x) != fmt.Sprint(y) {
		t.Fatalf("%q and %q", x, y)
	}
	for _, name := range names(a) {
		sameContent(t, filepath.Join(a, name), filepath.Join(b, name))
	}
}
