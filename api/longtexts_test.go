package api

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

var responseID = regexp.MustCompile(`resp_[0-9a-f]+`)

// TestLongTexts_AreStoredWhole: a long text goes from the request's body to the engine's without a copy, and that memory is then another
// request's. What is stored of each conversation is its own text all the same, and so is what engines are sent when it goes on.
func TestLongTexts_AreStoredWhole(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 1}}}, anyPrompt)
	var all sync.WaitGroup
	for i := range 32 {
		name := fmt.Sprintf(`<%d\n>`, i)
		long := strings.Repeat(name, (88<<10)/len(name)+i)
		all.Go(func() {
			more := []string{"", `,"stream":true`}[i/2%2]
			path, texts, input := "/v1/responses", "/input_items", `"`+long+`"`
			if i%2 == 0 {
				path, texts = "/api/v1/chat", ""
			} else if i%3 == 0 {
				input = `[{"role":"user","content":[{"type":"input_text","text":"` + long + `"}]}]`
			}
			got := s.do("POST", path, `{"model":"tinychat","input":`+input+more+`}`)
			id := responseID.FindString(got.body)
			if got.status != 200 || id == "" {
				t.Errorf("%d: %d %.300s", i, got.status, got.body)
				return
			}
			stored := s.do("GET", strings.Replace(path, "/chat", "/responses", 1)+"/"+id+texts, "")
			said := gjson.Get(stored.body, "data.0.content.0.text").Str + gjson.Get(stored.body, "input.0.content").Str
			if want := strings.ReplaceAll(long, `\n`, "\n"); said != want {
				t.Errorf("%d: %d bytes are stored, of %d: %.100q", i, len(said), len(want), said)
			}
			if got := s.do("POST", path, `{"model":"tinychat","input":"And?","previous_response_id":"`+id+`"}`); got.status != 200 {
				t.Errorf("%d goes on: %d %.300s", i, got.status, got.body)
			}
		})
	}
	all.Wait()
	s.bodiesAreWhole()
}
