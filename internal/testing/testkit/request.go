// Package testkit has what the tests of several of translate's packages need.
package testkit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Scan scans a request, which has to be valid.
func Scan(tb testing.TB, body string) *jsonbody.Body {
	tb.Helper()
	b, err := jsonbody.Scan([]byte(body))
	if err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return b
}

// Nested nests inner in depth pairs of open and end.
func Nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

// ManyFields returns an object with n fields.
func ManyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":%d`, i, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// Properties returns the schema of an object with n properties, each with the schema inner.
func Properties(n int, inner string, required bool) string {
	var props, names []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"p%d":%s`, i, inner))
		names = append(names, fmt.Sprintf(`"p%d"`, i))
	}
	schema := `{"type":"object","properties":{` + strings.Join(props, ",") + `}`
	if required {
		schema += `,"required":[` + strings.Join(names, ",") + `]`
	}
	return schema + `}`
}
