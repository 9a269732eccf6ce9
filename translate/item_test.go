package translate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPart_IsBlank(t *testing.T) {
	t.Parallel()
	for quoted, want := range map[string]bool{``: true, ` \n\t`: true, "\u00a0\u3000": true, ` \na`: false, `a`: false, `\\n`: false, `\"`: false, "é": false} {
		part := Part{Quoted: []byte(quoted)}
		if is := part.IsBlank(); is != want {
			t.Errorf("%q: %t", quoted, is)
		}
		plain := Part{Text: part.Plain()}
		if is := plain.IsBlank(); is != want {
			t.Errorf("%q: %t", plain.Text, is)
		}
	}
	image := Part{Media: new(Media)}
	if image.IsBlank() {
		t.Error("an image is blank")
	}
}

// What becomes of a request's body makes no difference to settled items.
func TestSettled(t *testing.T) {
	t.Parallel()
	body := []byte(`a\nb "{\"c\":1}"`)
	items := []Item{
		{Kind: ItemMessage, Parts: []Part{{Text: "x"}, {Quoted: body[:4:4]}}},
		{Kind: ItemCall, Args: body[5:], AreObject: true},
		{Kind: ItemMessage, Parts: []Part{{Text: "y"}}},
	}
	given := slices.Clone(items[0].Parts)
	settled := Settled(items)
	if diff := cmp.Diff(given, items[0].Parts); diff != "" {
		t.Errorf("the argument was changed (-before +after):\n%s", diff)
	}
	copy(body, strings.Repeat("#", len(body)))
	want := []Item{
		{Kind: ItemMessage, Parts: []Part{{Text: "x"}, {Text: "a\nb"}}},
		{Kind: ItemCall, Args: []byte(`"{\"c\":1}"`), AreObject: true},
		{Kind: ItemMessage, Parts: []Part{{Text: "y"}}},
	}
	if diff := cmp.Diff(want, settled); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
