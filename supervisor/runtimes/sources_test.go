package runtimes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSources(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       []aptSource
	}{
		{"as installed", `Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`, []aptSource{{
			uris: []string{"http://mirror.example/debian"}, suites: []string{"bookworm", "bookworm-updates"},
			components: []string{"main", "contrib"},
			options:    map[string]string{"Signed-By": "/usr/share/keyrings/debian-archive-keyring.gpg"},
		}}},
		{"comments, other cases, lines that go on", `# the mirror
types: deb
# in the middle
uris: http://one.example/debian
 http://two.example/debian
suites: trixie
Components:
  main

Types: deb
URIs: http://three.example/debian
Suites: sid
Components: main
Check-Valid-Until: no`, []aptSource{
			{
				uris: []string{"http://one.example/debian", "http://two.example/debian"}, suites: []string{"trixie"},
				components: []string{"main"}, options: map[string]string{},
			},
			{
				uris: []string{"http://three.example/debian"}, suites: []string{"sid"}, components: []string{"main"},
				options: map[string]string{"Check-Valid-Until": "no"},
			},
		}},
		{"a whole key", `Types: deb
URIs: http://mirror.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBGPL0BUBEADmW5NdOOHwPIJlgPu6JDcKw/NZJPR8lsD3K87ZM18gzyQZJD+w
 -----END PGP PUBLIC KEY BLOCK-----
`, []aptSource{{
			uris: []string{"http://mirror.example/debian"}, suites: []string{"bookworm"}, components: []string{"main"},
			options: map[string]string{"Signed-By": `
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBGPL0BUBEADmW5NdOOHwPIJlgPu6JDcKw/NZJPR8lsD3K87ZM18gzyQZJD+w
 -----END PGP PUBLIC KEY BLOCK-----`},
		}}},
		{"disabled", "Enabled: no\nTypes: deb\nURIs: http://x.example\nSuites: bookworm\nComponents: main\n", nil},
		{"sources only", "Types: deb-src\nURIs: http://x.example\nSuites: bookworm\nComponents: main\n", nil},
		{"empty", "\n\n# nothing\n\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, parseSources(test.text), cmp.AllowUnexported(aptSource{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSourcesList(t *testing.T) {
	t.Parallel()
	text := `# deb http://disabled.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # the mirror
deb-src http://mirror.example/debian bookworm main
  deb	[arch=amd64,arm64 signed-by=/etc/apt/keyrings/own.gpg trusted=yes] http://two.example/debian  trixie main
deb [broken http://three.example/debian trixie main
deb http://flat.example/debian ./
debx http://four.example/debian trixie main
`
	want := []aptSource{
		{
			uris: []string{"http://mirror.example/debian"}, suites: []string{"bookworm"}, components: []string{"main", "contrib"},
			options: map[string]string{},
		},
		{
			uris: []string{"http://two.example/debian"}, suites: []string{"trixie"}, components: []string{"main"},
			options: map[string]string{"Signed-By": "/etc/apt/keyrings/own.gpg", "Trusted": "yes"},
		},
	}
	if diff := cmp.Diff(want, parseSourcesList(text), cmp.AllowUnexported(aptSource{})); diff != "" {
		t.Error(diff)
	}
}

func TestDebianOwn(t *testing.T) {
	t.Parallel()
	const lists = `deb http://security.example/debian-security bookworm-security main
deb http://old-security.example/debian-security bookworm/updates main
deb http://vendor.example/debian vendor-bookworm main
deb http://vendor.example/nodes nodistro main
deb http://vendor.example/docker bookworm stable
deb cdrom:[Debian]/ bookworm main
`
	const (
		official = "deb http://mirror.example/debian bookworm main\n"
		keyring  = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://keyring.example/debian stable main non-free\n"
		vendor   = "deb [signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.example/tools bookworm main\n"
	)
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"none", lists, nil},
		{"Debian's alone", lists + official + vendor + keyring, []string{"http://mirror.example/debian", "http://keyring.example/debian"}},
		{"a mirror that signs anew", lists + vendor, []string{"http://vendor.example/tools"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var uris []string
			for _, source := range debianOwn(parseSourcesList(test.text)) {
				uris = append(uris, source.uris...)
			}
			same(t, "entries", uris, test.want)
		})
	}
}

func TestInSuite(t *testing.T) {
	t.Parallel()
	source := parseSources("Types: deb\nURIs: http://a.example/debian http://b.example/debian\nSuites: bookworm bookworm-updates\n" +
		"Components: main non-free\nArchitectures: i386\nSigned-By:\n KEY\n .\n END\n")[0]
	same(t, "stanza", source.inSuite("forky", "main contrib"), `Types: deb
URIs: http://a.example/debian http://b.example/debian
Suites: forky
Components: main contrib
Targets: Packages
Signed-By: 
 KEY
 .
 END
`)
}

func TestNeededPackages_LibrariesOnly(t *testing.T) {
	t.Parallel()
	graph := `llama.cpp-tools
  Depends: libllama0
  Depends: debconf
 |Depends: wget
  Depends: curl
  Depends: libc6
  Depends: <debconf-2.0>
libllama0
  Depends: libc6
  Depends: libggml0
  Depends: libssl3t64
debconf
  Depends: libdebconf-only
wget
  Depends: libpcre2-8-0
libggml0
  Depends: libgomp1
libssl3t64
  PreDepends: zlib1g
  Depends: openssl-provider-legacy
libgomp1
  Depends: gcc-16-base
libc6
  Depends: libgcc-s1
  Breaks: libold
libggml0-backend-cuda
  Depends: libggml0
 |Depends: libcuda1
  Depends: <libcuda.so.1>
    libcuda1
  Depends: libcublas12
libcuda1
  Depends: libnvidia-ptxjitcompiler1
libcublas12
  Depends: libcublaslt12
`
	same(t, "packages", neededPackages(graph, "llama.cpp-tools"), []string{"llama.cpp-tools", "libllama0", "libc6", "libggml0", "libssl3t64", "libgcc-s1", "libgomp1", "zlib1g"})
	same(t, "packages without the driver's", neededPackages(graph, "libggml0-backend-cuda", "libmore"),
		[]string{"libggml0-backend-cuda", "libmore", "libggml0", "libcublas12", "libgomp1", "libcublaslt12"})
}
