package supervisor

import (
	"context"
	"net/http"
	"strings"
)

// Servers of this kind may be remotes of each other. A request that one sends to another names, in the header Via, all that it has passed,
// so that it never goes round: no place is taken that is on one of these, and a server that finds itself in the list refuses the request.

// viaPrefix begins what a server calls itself in the header Via. An id follows, which lasts as long as its process.
const viaPrefix = "lmcaddy-"

// MostHops is how many servers a request may have passed.
const MostHops = 8

type viaKey struct{}

// WithVia returns a context for a request that has passed servers with these ids.
func WithVia(ctx context.Context, ids []string) context.Context {
	if len(ids) == 0 {
		return ctx
	}
	return context.WithValue(ctx, viaKey{}, ids)
}

// Via returns the ids of the servers that a request has passed, the first one first.
func Via(ctx context.Context) []string {
	ids, _ := ctx.Value(viaKey{}).([]string)
	return ids
}

// ParseVia returns the ids in headers. Other servers in them are left out.
func ParseVia(h http.Header) (ids []string) {
	for _, line := range h["Via"] {
		for hop := range strings.SplitSeq(line, ",") {
			_, name, _ := strings.Cut(strings.TrimSpace(hop), " ")
			if id, ok := strings.CutPrefix(strings.TrimSpace(name), viaPrefix); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// FormatVia returns the header Via of a request that has passed servers with these ids.
func FormatVia(ids []string) string {
	hops := make([]string, len(ids))
	for i, id := range ids {
		hops[i] = "1.1 " + viaPrefix + id
	}
	return strings.Join(hops, ", ")
}
