package api

import (
	"os"
	"testing"

	"github.com/lmcaddy/lmcaddy/node"
)

// TestStore_OfWhichTheFileIsGone: what would be lost is refused with a status that says so, and the rest goes on.
func TestStore_OfWhichTheFileIsGone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	file := s.node.Home().Database()
	before := s.native("hi", "")
	if before.status != 200 {
		t.Fatal(before.body)
	}
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]answer{
		"native":    s.native("hi", ""),
		"responses": s.respond(`"hi"`, ""),
	} {
		if got.status != 503 || got.code() != "store_unavailable" || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %q %s", what, got.status, got.header.Get("Retry-After"), got.body)
		}
	}
	for what, got := range map[string]answer{
		"native":    s.native("hi", `,"store":false`),
		"responses": s.respond(`"hi"`, `,"store":false`),
		"chat":      s.chat(""),
		"messages":  s.messages(""),
	} {
		if got.status != 200 {
			t.Errorf("%s, without storing: %d %s", what, got.status, got.body)
		}
	}
	s.wantHealth("", 200, "degraded", node.TroubleStore)
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if got := s.native("hi", ""); got.status != 200 {
		t.Errorf("the file is back: %d %s", got.status, got.body)
	}
}
