package runtimes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
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

// normalVersion converts a version given by a user into a tag.
func normalVersion(version string) (string, error) {
	tag := strings.ToLower(strings.TrimSpace(version))
	if regexp.MustCompile(`^\d+$`).MatchString(tag) {
		tag = "b" + tag
	}
	if tag != "" && !buildTag.MatchString(tag) && !versionTag.MatchString(tag) {
		return "", fmt.Errorf("%q is not a version of llama.cpp: give a build like b11669 or a release like v0.7.0", version)
	}
	return tag, nil
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
	return parseRelease(text)
}

func parseRelease(text []byte) (release, error) {
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

// readPointer returns the tag in a pointer asset.
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

// read downloads a small document.
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
