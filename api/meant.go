package api

import (
	"net/http"
	"net/url"
	"strings"
)

// meant returns a request with the path of the endpoint that its client means, see [meantPath]. It is the first step of whatever looks at a
// path: which route a request takes, and with it the rights that it needs, is decided once, by the path that is returned. It is no redirect, after
// which many clients would send a GET.
func meant(r *http.Request) *http.Request {
	path := meantPath(r.Method, r.URL.Path)
	if path == r.URL.Path {
		return r
	}
	other := *r
	other.URL = new(url.URL)
	*other.URL = *r.URL
	other.URL.Path, other.URL.RawPath = path, ""
	return &other
}

// meantPath returns the path that is meant by one with a slash too many, which a base URL with a slash at its end leads to, or with a version
// too many. A path of none of our endpoints is returned as it is, but without those slashes if it is below the API's.
//
// What is outside /v1/ is never reached by a path below it, nor what is below /api/ by another path there: proxies and matchers in front of us allow
// some paths and not others.
func meantPath(method, path string) string {
	if hasRoute(method, path) {
		return path
	}
	plain := withoutExtraSlashes(path)
	if method == http.MethodDelete && !deletesThat(path, plain) {
		return path
	}
	if hasRoute(method, plain) {
		return plain
	}
	if other, ok := openAIPath(method, plain); ok && hasRoute(method, other) {
		return other
	}
	if ownsPath(plain) {
		return plain
	}
	return path
}

func hasRoute(method, path string) bool {
	found, _, _ := lookUp(method, path)
	return found != nil
}

// withoutExtraSlashes returns a path without empty segments.
func withoutExtraSlashes(path string) string {
	if !strings.Contains(path, "//") && !strings.HasSuffix(path, "/") {
		return path
	}
	var plain strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			plain.WriteString("/" + segment)
		}
	}
	return plain.String()
}

// deletesThat reports whether a request to delete what a plain path names may have come with another path. An empty segment where an id
// belongs is that of a client whose variable is empty: without it, the path could be that of all conversations.
func deletesThat(path, plain string) bool {
	_, param, _ := lookUp(http.MethodDelete, plain)
	before, ok := strings.CutSuffix(path, "/"+param)
	return !strings.HasSuffix(path, "/") && (param == "" || ok && !strings.HasSuffix(before, "/"))
}

// openAIPath returns the path below /v1/ that one with further versions stands for: clients add paths such as /v1/chat/completions and
// /chat/completions to a base URL that ends in /v1 or /api/v1.
func openAIPath(method, path string) (string, bool) {
	rest, isNative := strings.CutPrefix(path, "/api")
	versions := 0
	for {
		after, ok := strings.CutPrefix(rest, "/v1")
		if !ok || !strings.HasPrefix(after, "/") {
			break
		}
		rest = after
		versions++
	}
	if versions == 0 {
		return "", false
	}
	path = "/v1" + rest
	if isNative { // a path of its own may be meant as well, if only with another method
		found, _, allowed := lookUp(method, "/api/v1"+rest)
		_, isLiteral := literalRoutes()[path]
		if found != nil || len(allowed) > 0 && !isLiteral {
			return "", false
		}
	}
	return path, true
}

// nearest returns the path of the endpoint that an unknown path probably means; empty if there is none. Clients add a path to a base URL that
// has parts of it already, or lacks some.
func nearest(path string) string {
	for rest := withoutExtraSlashes(path); rest != ""; {
		for _, prefix := range []string{"", "/v1", "/api/v1", "/api"} {
			if _, ok := literalRoutes()[prefix+rest]; ok && prefix+rest != path {
				return prefix + rest
			}
		}
		next := strings.IndexByte(rest[1:], '/')
		if next < 0 {
			break
		}
		rest = rest[1+next:]
	}
	return ""
}
