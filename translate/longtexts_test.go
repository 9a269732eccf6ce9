package translate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/internal/testkit"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Whether a message has long texts that weren't copied makes no difference for the chain.
func TestPrompter_LongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`a\n\"b\"`, request.LongText)
	quotedImage := strings.ReplaceAll(`{"type":"image_url","image_url":{"url":"data:"}}`, `"`, `\"`)
	part := func(text string) translate.Part { return translate.Part{Quoted: []byte(text)} }
	image := translate.Part{Image: &translate.Image{Type: "image/png", Data: []byte{0, 1, 2}}}
	says := func(role translate.Role, parts ...translate.Part) translate.Item {
		return translate.Item{Kind: translate.ItemMessage, Role: role, Parts: parts}
	}
	for name, items := range map[string][]translate.Item{
		"one":          {says(translate.RoleUser, part(long))},
		"several":      {says(translate.RoleUser, part(long), part("b"), part(long)), says(translate.RoleAssistant, part("c")), says(translate.RoleUser, part(long))},
		"that goes on": {says(translate.RoleUser, part("b")), says(translate.RoleAssistant, part(long))},
		"with images":  {says(translate.RoleUser, image, part(long), image, part(quotedImage+long), image), says(translate.RoleAssistant, part(long))},
		"about images": {says(translate.RoleUser, part(quotedImage), part(long), part(quotedImage))},
	} {
		messages := request.MessagesOf(items)
		made, err := messages.Body()
		if err != nil {
			t.Fatal(err)
		}
		chain := func(body *jsonbody.Body) prefix.Chain {
			m := prefix.New(0)
			llamaserver.Wire{}.ChatPrompt(body, &request.Chat{}, m)
			return m.Chain()
		}
		if diff := cmp.Diff(chain(testkit.Scan(t, string(new(jsonbody.Edit).Apply(made)))), chain(made)); diff != "" {
			t.Errorf("%s (-whole +in pieces):\n%s", name, diff)
		}
	}
}
