package openai

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

func scanned(tb testing.TB, body string) *jsonbody.Body {
	tb.Helper()
	b, err := jsonbody.Scan([]byte(body))
	if err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return b
}
