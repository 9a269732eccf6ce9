package api

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// checkQuery returns an error if the query of a request to an endpoint with parameters can't be read, has a name that isn't one of
// theirs, or has one twice.
func (c *call) checkQuery(r *route) error {
	if r.query == nil || c.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return translate.Invalid("invalid_query", "", "The query of the URL can't be read. Write special characters in percent-encoding, such as %3B for a semicolon.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(r.query, name) {
			return translate.Invalid("unknown_parameter", name, "This endpoint has no parameter "+quoted(name)+". It has: "+strings.Join(r.query, ", ")+".")
		}
		if len(query[name]) > 1 {
			return translate.Invalid("duplicate_parameter", name, `"`+name+`" is in the URL more than once. Give it once.`)
		}
	}
	return nil
}
