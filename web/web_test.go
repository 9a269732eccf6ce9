package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestPage_IsUpToDate builds the page again, which also checks its types.
func TestPage_IsUpToDate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.Command("../tools/page.sh", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for made, committed := range map[string]string{"index.html": "dist/index.html", "highlight.js": "dist/highlight.js", "math.js": "dist/math.js", "pdf.js": "dist/pdf.js", "manifest.json": "dist/manifest.json", "icon.svg": "dist/icon.svg", "schema.ts": "src/schema.ts"} {
		want, err := os.ReadFile(filepath.Join(dir, made))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(committed); err != nil || !bytes.Equal(got, want) {
			t.Errorf("web/%s isn't what web/src makes (%v): run `make page`, and commit what it changes", committed, err)
		}
	}
}

// most is how many bytes the page may have, compressed, and mostOfPart each of its parts, which come when they are needed.
const most, mostOfPart = 170 << 10, 512 << 10

func TestPage_IsSmall(t *testing.T) {
	t.Parallel()
	p := Get()
	if len(p.Gzip) > most || len(p.Zstd) > most {
		t.Errorf("the page has %d bytes with gzip, %d with zstd: more than %d", len(p.Gzip), len(p.Zstd), most)
	}
	t.Logf("%d bytes, %d with gzip, %d with zstd", len(p.Plain), len(p.Gzip), len(p.Zstd))
	for path := range parts {
		if part := Part(path); len(part.Gzip) > mostOfPart || len(part.Zstd) > mostOfPart {
			t.Errorf("%s has %d bytes with gzip, %d with zstd: more than %d", path, len(part.Gzip), len(part.Zstd), mostOfPart)
		}
	}
	reader, err := gzip.NewReader(bytes.NewReader(p.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, p.Plain) {
		t.Errorf("%v: gzip changes the page", err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	if got, err := decoder.DecodeAll(p.Zstd, nil); err != nil || !bytes.Equal(got, p.Plain) {
		t.Errorf("%v: zstd changes the page", err)
	}
}

// TestPage_IsComplete: the page refers to nothing outside it, since its policy would refuse that.
func TestPage_IsComplete(t *testing.T) {
	t.Parallel()
	html := string(Get().Plain)
	// As a module, the script runs after what is above it can be seen.
	for element, tag := range map[string]string{"script": `<script type="module">`, "style": "<style>"} {
		if n := len(regexp.MustCompile(`<`+element+`[\s>]`).FindAllString(html, -1)); n != 1 || strings.Count(html, tag) != 1 {
			t.Errorf("the page has %d elements %s: it must have one, %s", n, element, tag)
		}
	}
	head, _, _ := strings.Cut(html, "<style>")
	if found := regexp.MustCompile(`(src|href)="([^"]*)"`).FindAllStringSubmatch(head, -1); len(found) != 2 || !HasPart(found[0][2]) || !strings.HasPrefix(found[1][2], "data:") {
		t.Errorf("%v", found)
	}
	if strings.Contains(html, "innerHTML=") && !strings.Contains(html, "dangerouslySetInnerHTML") {
		t.Error("the page sets innerHTML")
	}
	for _, word := range []string{"'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*"} {
		if strings.Contains(Get().Policy, word) {
			t.Errorf("the policy allows %s: %s", word, Get().Policy)
		}
	}
}
