package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/translate"
)

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
