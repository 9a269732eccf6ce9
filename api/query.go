package api

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// parameters are those of the endpoints of the native API that have any, by method and path. There, another one is an error: without it,
// the misspelled name of a filter would delete what it was to spare.
var parameters = map[string][]string{
	"GET /api/v1/usage":              {"from", "to", "since", "by"},
	"GET /api/v1/logs":               {"limit", "level", "engine", "model", "instance", "request", "since", "follow"},
	"GET /api/v1/events":             {"types", "level"},
	"GET /api/v1/requests":           {"limit", "model", "outcome"},
	"GET /api/v1/conversations":      {"limit", "cursor", "owner"},
	"DELETE /api/v1/conversations":   {"updated_before", "owner"},
	"GET /api/v1/conversations/*":    {"responses", "branches", "owner"},
	"DELETE /api/v1/conversations/*": {"owner"},
	"GET /api/v1/models/variants":    {"model"},
	"GET /api/v1/models/search":      {"query", "limit"},
	"DELETE /api/v1/warm":            {"model"},
}

// checkQuery returns an error if the query of a request to an endpoint with parameters can't be read, has a name that isn't one of
// theirs, or has one twice.
func (c *call) checkQuery(r *route) error {
	names, ok := parameters[r.method+" "+r.path]
	if !ok || c.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return translate.Invalid("invalid_query", "", "The query of the URL can't be read. Write special characters in percent-encoding, such as %3B for a semicolon.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(names, name) {
			return translate.Invalid("unknown_parameter", name, "This endpoint has no parameter "+quoted(name)+". It has: "+strings.Join(names, ", ")+".")
		}
		if len(query[name]) > 1 {
			return translate.Invalid("duplicate_parameter", name, `"`+name+`" is in the URL more than once. Give it once.`)
		}
	}
	return nil
}
