package runtimes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

const (
	// releasesURL is the base of GitHub's API for the project's releases.
	releasesURL = "https://api.github.com/repos/ggml-org/llama.cpp/releases"
	// pointerName is the only asset of a release with a semantic version. It contains the tag of the build release that has the
	// archives. Since v0.2.0 the latest release is of this kind.
	pointerName = "nightly-tag.txt"

	maxAnswerBytes  = 8 << 20
	maxPointerBytes = 128
)

var (
	buildTag   = regexp.MustCompile(`^b\d+$`)
	versionTag = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
)

// release is a published version.
type release struct {
	tag    string
	assets []asset
}

// asset is a file of a release.
type asset struct {
	name, url string
	sha256    string // in hex; empty if the release doesn't state it
	size      int64
}

// findRelease returns the release with a tag; an empty tag is the latest release.
func (c *remote) findRelease(ctx context.Context, tag string) (release, error) {
	found, err := c.askRelease(ctx, tag)
	if err != nil {
		return release{}, err
	}
	for _, a := range found.assets {
		if a.name != pointerName {
			continue
		}
		target, err := c.readPointer(ctx, a)
		if err != nil {
			return release{}, fmt.Errorf("reading which build release %s is: %w", found.tag, err)
		}
		return c.askRelease(ctx, target)
	}
	return found, nil
}

func (c *remote) askRelease(ctx context.Context, tag string) (release, error) {
	where := c.base + "/latest"
	if tag != "" {
		where = c.base + "/tags/" + tag
	}
	text, err := c.read(ctx, where, maxAnswerBytes)
	if err != nil {
		status, ok := errors.AsType[*statusError](err)
		if ok && tag != "" && status.code == http.StatusNotFound {
			return release{}, &wishError{fmt.Sprintf("there is no release %s of llama.cpp", tag)}
		}
		return release{}, err
	}
	if !gjson.ValidBytes(text) {
		return release{}, errors.New("the list of the release's files is not JSON")
	}
	answer := gjson.ParseBytes(text)
	found := release{tag: answer.Get("tag_name").String()}
	if !buildTag.MatchString(found.tag) && !versionTag.MatchString(found.tag) {
		return release{}, fmt.Errorf("the release has an unexpected tag: %q", found.tag)
	}
	answer.Get("assets").ForEach(func(_, a gjson.Result) bool {
		digest, isSHA256 := strings.CutPrefix(a.Get("digest").String(), "sha256:")
		if raw, err := hex.DecodeString(digest); !isSHA256 || err != nil || len(raw) != sha256.Size {
			digest = ""
		}
		found.assets = append(found.assets, asset{
			name: a.Get("name").String(), url: a.Get("browser_download_url").String(),
			sha256: strings.ToLower(digest), size: a.Get("size").Int(),
		})
		return true
	})
	return found, nil
}

func (c *remote) readPointer(ctx context.Context, a asset) (string, error) {
	if err := c.check(a); err != nil {
		return "", err
	}
	text, err := c.read(ctx, a.url, maxPointerBytes)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != a.sha256 {
		return "", fmt.Errorf("%s has another checksum than the release says", a.name)
	}
	tag := strings.TrimSpace(string(text))
	if !buildTag.MatchString(tag) {
		return "", fmt.Errorf("%s holds no build's tag", a.name)
	}
	return tag, nil
}

func (c *remote) read(ctx context.Context, where string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/vnd.github+json, text/plain;q=0.5, */*;q=0.1")
	request.Header.Set("User-Agent", outbound.UserAgent)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", where, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("reading %s: the answer is longer than %d bytes", where, limit)
	}
	return text, nil
}

// check rejects an asset without a checksum, or with a URL that checkURL rejects.
func (c *remote) check(a asset) error {
	if a.sha256 == "" {
		return fmt.Errorf("the release states no SHA-256 checksum for %s, so it is not fetched", a.name)
	}
	return c.checkURL(a.url)
}

// checkURL rejects URLs with a special meaning to go-getter, and those less secure than the URL of the release.
func (c *remote) checkURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the release gives a malformed address: %w", err)
	}
	secure := parsed.Scheme == "https" || (parsed.Scheme == "http" && strings.HasPrefix(c.base, "http://"))
	if !secure || parsed.Host == "" || parsed.RawQuery != "" || strings.Contains(parsed.Path, "//") || strings.Contains(address, "::") {
		return fmt.Errorf("the release gives an address that won't be fetched: %s", address)
	}
	return nil
}

// The variants that are chosen by hardware. A release may have others, which must be requested.
const (
	variantCPU    = "cpu"
	variantVulkan = "vulkan"
	variantCUDA   = "cuda"
	variantMetal  = "metal"
)

// turing is the lowest compute capability that CUDA 13 supports.
var turing = dotted{7, 5}

var (
	// archiveName parses names such as llama-b11669-bin-ubuntu-vulkan-x64.tar.gz and llama-b11669-bin-macos-arm64.tar.gz.
	archiveName = regexp.MustCompile(`^llama-b\d+-bin-(ubuntu|macos|win)(?:-([a-z]+)(?:-([\w.-]+?))?)?-(x64|arm64)\.(?:zip|tar\.gz)$`)
	// cudaLibraries parses the names of archives with CUDA's libraries, which contain the build's tag on Linux only.
	cudaLibraries = regexp.MustCompile(`^cudart-llama-(?:b\d+-)?bin-(ubuntu|win)-cuda-([\d.]+)-(x64|arm64)\.(?:zip|tar\.gz)$`)
)

// build is a build of the engine in a release.
type build struct {
	variant   string
	toolkit   dotted // CUDA version of a CUDA build
	archive   asset
	libraries *asset // CUDA's libraries; nil if the release lacks them
}

// preference returns the variants for this hardware, best first.
func (h hardware) preference() []string {
	if h.os == "darwin" {
		return []string{variantMetal, variantCPU}
	}
	var order []string
	if h.nvidia != nil {
		order = append(order, variantCUDA)
	}
	if h.vulkan {
		order = append(order, variantVulkan)
	}
	return append(order, variantCPU)
}

func (r release) buildsFor(goos, goarch string) []build {
	system := map[string]string{"linux": "ubuntu", "darwin": "macos", "windows": "win"}[goos]
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	var builds []build
	for _, a := range r.assets {
		match := archiveName.FindStringSubmatch(a.name)
		if match == nil || match[1] != system || match[4] != arch {
			continue
		}
		b := build{variant: match[2], archive: a}
		switch {
		case b.variant == variantCUDA:
			b.toolkit, _ = parseDotted(match[3])
			i := slices.IndexFunc(r.assets, func(a asset) bool {
				of := cudaLibraries.FindStringSubmatch(a.name)
				return of != nil && of[1] == system && of[2] == match[3] && of[3] == arch
			})
			if i >= 0 {
				b.libraries = &r.assets[i]
			}
		case b.variant == "" && goos == "darwin" && goarch == "arm64":
			b.variant = variantMetal // the only macOS build for Apple silicon uses the GPU
		case b.variant == "":
			b.variant = variantCPU
		}
		builds = append(builds, b)
	}
	return builds
}

// choose returns the builds to try, best first; only one if a variant was requested.
func (h hardware) choose(r release, want string) ([]build, error) {
	offered := r.buildsFor(h.os, h.arch)
	if len(offered) == 0 {
		return nil, &sourceError{fmt.Errorf("release %s has no build for %s/%s", r.tag, h.os, h.arch)}
	}
	byVariant := map[string][]build{}
	var names []string
	for _, b := range offered {
		if byVariant[b.variant] == nil {
			names = append(names, b.variant)
		}
		byVariant[b.variant] = append(byVariant[b.variant], b)
	}
	if want != "" {
		if byVariant[want] == nil {
			slices.Sort(names)
			return nil, &wishError{fmt.Sprintf("release %s has no variant %q for %s/%s; it has: %s",
				r.tag, want, h.os, h.arch, strings.Join(names, ", "))}
		}
		if best, ok := cmp.Or(h.nvidia, &nvidia{}).pickCUDA(byVariant[want]); ok && want == variantCUDA {
			return []build{best}, nil
		}
		return byVariant[want][:1], nil
	}
	var chosen []build
	for _, variant := range h.preference() {
		fitting := byVariant[variant]
		if variant == variantCUDA { // without CUDA's libraries a build would start, but compute on the CPU
			fitting = slices.DeleteFunc(slices.Clone(fitting), func(b build) bool { return b.libraries == nil })
			best, ok := h.nvidia.pickCUDA(fitting)
			if fitting = nil; ok {
				fitting = []build{best}
			}
		}
		if len(fitting) > 0 {
			chosen = append(chosen, fitting[0])
		}
	}
	if len(chosen) == 0 {
		return nil, &sourceError{fmt.Errorf("release %s has no build that fits this hardware; it has: %s",
			r.tag, strings.Join(names, ", "))}
	}
	return chosen, nil
}

// pickCUDA chooses among builds for different CUDA versions: the newest that the driver supports, or else one of the driver's
// major version, which works as well. It reports false if the GPU can't run any of them.
func (n *nvidia) pickCUDA(builds []build) (build, bool) {
	var newest, nearest, oldest *build
	for i := range builds {
		b := &builds[i]
		if (n.capability != dotted{}) && n.capability.compare(turing) < 0 && b.toolkit.major >= 13 {
			continue
		}
		if oldest == nil || b.toolkit.compare(oldest.toolkit) < 0 {
			oldest = b
		}
		if b.toolkit.compare(n.cuda) <= 0 && (newest == nil || b.toolkit.compare(newest.toolkit) > 0) {
			newest = b
		}
		if b.toolkit.major == n.cuda.major && (nearest == nil || b.toolkit.compare(nearest.toolkit) < 0) {
			nearest = b
		}
	}
	switch {
	case newest != nil:
		return *newest, true
	case nearest != nil:
		return *nearest, true
	case oldest != nil && n.cuda == dotted{}: // the driver is unknown, and the oldest version requires the least
		return *oldest, true
	default:
		return build{}, false
	}
}
