package venv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSettings(t *testing.T) {
	t.Parallel()
	s := parseSettings([]string{
		":env:.default-timeout='180'", ":env:.target='/elsewhere'",
		"global.cert='/etc/ca.crt'", "global.index-url='https://a/simple'", "global.user='true'",
		`global.extra-index-url='\nhttps://b\nhttps://c'`, `install.proxy="it's"`, "install.index-url='https://u:p@d/simple'",
		"freeze.index-url='https://wrong'", "global.timeout=", "nonsense",
	})
	want := []string{
		"PIP_INDEX_URL=https://u:p@d/simple", "PIP_EXTRA_INDEX_URL= https://b https://c", "PIP_CERT=/etc/ca.crt", "PIP_PROXY=it's", "PIP_DEFAULT_TIMEOUT=180",
	}
	if diff := cmp.Diff(want, s.variables()); diff != "" {
		t.Error(diff)
	}
	if source := s.source(); source != "d" {
		t.Errorf("the source is %q", source)
	}
	s["find-links"], s["no-index"] = "/wheels", "true"
	s.use("http://e/simple")
	if diff := cmp.Diff([]string{"PIP_INDEX_URL=http://e/simple", "PIP_CERT=/etc/ca.crt", "PIP_PROXY=it's", "PIP_DEFAULT_TIMEOUT=180"}, s.variables()); diff != "" {
		t.Error(diff)
	}
	if source := (settings{}).source(); source != "PyPI" {
		t.Errorf("without an index, the source is %q", source)
	}
}

func TestTellsProgress(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"21.2.4": false, "24.0": false, "24.1": true, "24.1.2": true, "25.0.1": true, "": false, "x": false} {
		if got := (pip{version: version}).tellsProgress(); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var told []string
	p := progress{report: func(doing string, done, total int64) {
		told = append(told, fmt.Sprintf("%s %d/%d", doing, done, total))
	}}
	p.line("Progress 1 of 2") // of what?
	for line := range strings.Lines(`Looking in indexes: http://127.0.0.1:1/simple
Collecting mlx-lm[cpu]==0.31.3
Downloading http://127.0.0.1:1/files/mlx_lm-0.31.3-py3-none-any.whl (350 kB)
Collecting mlx>=0.31.2
Downloading mlx-0.31.2-cp312-cp312-macosx_14_0_arm64.whl (35.0 MB)
Progress 0 of 35000000
Progress 35000000 of 35000000
Installing collected packages: mlx, mlx-lm
Successfully installed mlx-0.31.2 mlx-lm-0.31.3
`) {
		p.line(strings.TrimSpace(line))
	}
	want := []string{
		"looking for mlx-lm 0/0", "fetching mlx_lm-0.31.3-py3-none-any.whl 0/0", "looking for mlx 0/0",
		"fetching mlx-0.31.2-cp312-cp312-macosx_14_0_arm64.whl 0/0", "fetching mlx-0.31.2-cp312-cp312-macosx_14_0_arm64.whl 0/35000000",
		"fetching mlx-0.31.2-cp312-cp312-macosx_14_0_arm64.whl 35000000/35000000", "installing 2 packages 0/0",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"nothing":      {nil, ""},
		"not of pip":   {[]string{"Traceback", "ImportError: no"}, "ImportError: no"},
		"pip's error":  {[]string{"WARNING: old", "ERROR: No matching distribution found for x", "[notice] a new release"}, "No matching distribution found for x"},
		"pip's errors": {[]string{"ERROR: Could not find a version (from versions: 1, 2)", "ERROR: No matching distribution found for x"}, "Could not find a version (from versions: 1, 2)"},
		"a requirement lacks": {
			[]string{"ERROR: Could not find a version that satisfies the requirement mlx (from mlx-lm) (from versions: none)", "ERROR: No matching distribution found for mlx"},
			"Could not find a version that satisfies the requirement mlx (from mlx-lm) (from versions: none)",
		},
		"a refusal": {
			[]string{
				"  ERROR: HTTP error 403 while getting http://h/x.whl (from http://h/simple/x/)",
				"ERROR: Could not install requirement x from http://h/x.whl because of HTTP error 403 Client Error: Forbidden for url: http://h/x.whl",
			},
			"Could not install requirement x from http://h/x.whl because of HTTP error 403 Client Error: Forbidden for url: http://h/x.whl",
		},
		"unreachable": {
			[]string{
				"WARNING: Retrying (Retry(total=1)) after connection broken by 'ReadTimeoutError(\"HTTPConnectionPool(host='h', port=1): Read timed out. (read timeout=15)\")': /simple/x/",
				"WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/x/",
				"ERROR: Could not find a version (from versions: none)", "ERROR: No matching distribution found for x",
			},
			"the package index can't be reached: Failed to establish a new connection: [Errno 111] Connection refused; Could not find a version (from versions: none)",
		},
		"too slow": {
			[]string{"WARNING: Retrying (Retry(total=1)) after connection broken by 'ReadTimeoutError(\"HTTPConnectionPool(host='h', port=1): Read timed out. (read timeout=15)\")': /simple/x/"},
			"the package index can't be reached: HTTPConnectionPool(host='h', port=1): Read timed out. (read timeout=15)",
		},
	} {
		if got := reason(c.words); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
