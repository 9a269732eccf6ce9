package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// TestResponses_BroughtIsBounded: few bytes of a request can stand for a lot of what is stored.
func TestResponses_BroughtIsBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{}, func(c *endpoint.Config, _ *node.Settings) { c.MaxBrought = 20_000 })
	long := strings.Repeat("word ", 2400) // 12,000 bytes
	var ids, references []string
	for range 2 {
		got := s.respond(`"`+long+`"`, "")
		id := gjson.Get(got.body, "id").Str
		item := gjson.Get(s.do("GET", "/v1/responses/"+id+"/input_items", "").body, "data.0.id").Str
		if got.status != http.StatusOK || item == "" {
			t.Fatal(got.status, got.body)
		}
		ids, references = append(ids, id), append(references, `{"type":"item_reference","id":"`+item+`"}`)
	}
	continued := s.respond(`"`+long+`"`, `,"previous_response_id":"`+ids[0]+`"`)
	if continued.status != http.StatusOK {
		t.Fatal(continued.status, continued.body)
	}
	for name, tt := range map[string]struct {
		input, more string
		status      int
	}{
		"an item, many times":              {`[` + strings.Repeat(references[0]+",", 100) + `{"role":"user","content":"once?"}]`, "", 200},
		"two items":                        {`[` + references[0] + `,` + references[1] + `]`, "", 400},
		"an item beside what is continued": {`[` + references[1] + `]`, `,"previous_response_id":"` + ids[0] + `"`, 400},
		"a long conversation":              {`"and?"`, `,"previous_response_id":"` + gjson.Get(continued.body, "id").Str + `"`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.respond(tt.input, tt.more)
			if got.status != tt.status || tt.status == 400 && got.code() != "conversation_too_long" {
				t.Fatalf("%d %.300s", got.status, got.body)
			}
			for _, sent := range s.sent() {
				if strings.Contains(sent, "once?") && strings.Count(sent, long) != 1 {
					t.Errorf("the engine was sent the item %d times", strings.Count(sent, long))
				}
			}
		})
	}
}
