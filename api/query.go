package api

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
)

// checkQuery returns an error if the query of a request to an endpoint with parameters can't be read, has a name that isn't one of
// theirs, or has one twice.
func checkQuery(c *endpoint.Call, r *endpoint.Route) error {
	if r.Query == nil || c.Request.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return translate.Invalid("invalid_query", "", "The query of the URL can't be read. Write special characters in percent-encoding, such as %3B for a semicolon.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(r.Query, name) {
			return translate.Invalid("unknown_parameter", name, "This endpoint has no parameter "+endpoint.Quoted(name)+". It has: "+strings.Join(r.Query, ", ")+".")
		}
		if len(query[name]) > 1 {
			return translate.Invalid("duplicate_parameter", name, `"`+name+`" is in the URL more than once. Give it once.`)
		}
	}
	return nil
}
