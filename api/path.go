package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/translate"
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

// familyOf is the family that a path of the API belongs to. It is empty for the server's health and its certificate, which belong
// to none.
func familyOf(r *http.Request) endpoint.Family {
	if path := r.URL.Path; path == manage.HealthPath || path == "/api/v1/root.crt" {
		return ""
	}
	return dialectOf(r).Family
}

// Owns reports whether a request is for the API, known endpoint or not: its path is the API's, and of a family that the site
// serves.
func (a *API) Owns(r *http.Request) bool {
	r = meant(r)
	return ownsPath(r.URL.Path) && serves(a.Site, r)
}

func ownsPath(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/v1" || strings.HasPrefix(path, "/v1/") || path == "/lmstudio-greeting" ||
		isBareRerank(path)
}

// isBareRerank reports whether a path is one of those outside /v1 at which clients of other servers ask for ranks.
func isBareRerank(path string) bool { return path == "/rerank" || path == "/v2/rerank" }

func serves(a *endpoint.Site, r *http.Request) bool {
	if len(a.Families) == 0 {
		return true
	}
	family := familyOf(r)
	return family == "" || slices.Contains(a.Families, family)
}

// unknownPath says that there is no such endpoint. If the path has a wrong beginning, which a wrong base URL leads to, it
// also says which path is right. The first sentence is LM Studio's, which its users know.
func unknownPath(a *endpoint.Site, r *http.Request) *translate.Error {
	path := r.URL.Path
	message := "Unexpected endpoint or method. (" + r.Method + " " + path + ")"
	without, hasPrefix := strings.CutPrefix(path, "/v1")
	switch {
	case !serves(a, r) && ownsPath(path):
		message += " This site doesn't serve the API family " + string(familyOf(r)) + "."
	case hasPrefix && without != "" && isEndpoint(without):
		message += " The client adds " + without + " to its base URL, so the base URL must not have the /v1 at its end."
	case isEndpoint("/v1" + path):
		message += " The client's base URL must end in /v1, such as http://127.0.0.1:1234/v1."
	case nearest(path) != "":
		message += " The endpoint with such a name is " + nearest(path) + ": check the client's base URL."
	case !ownsPath(path):
		message += " OpenAI-style clients take a base URL that ends in /v1, Anthropic-style clients one without it. " +
			"The API is below /v1/ and /api/."
	}
	return &translate.Error{Kind: translate.KindPathNotFound, Message: message}
}

// isEndpoint reports whether a path is that of an endpoint, whatever the method.
func isEndpoint(path string) bool {
	found, _, allowed := lookUp(http.MethodGet, path)
	return found != nil || len(allowed) > 0
}
