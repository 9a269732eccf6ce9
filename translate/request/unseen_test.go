package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestSeen: what is stored keeps its images, for a model that can see them.
func TestSeen(t *testing.T) {
	t.Parallel()
	image := &translate.Media{Type: "image/png", Data: []byte("a")}
	stored := func() []translate.Item {
		return []translate.Item{
			{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: "What is it?"}, {Media: image}}},
			{Kind: translate.ItemMessage, Role: translate.RoleAssistant, Parts: []translate.Part{{Text: "A cat."}}},
		}
	}
	items, left := stored(), stored()
	left[0].Parts[1] = translate.Part{Text: "[image omitted: this model can't see images]"}
	for name, tt := range map[string]struct {
		caps Caps
		want []translate.Item
	}{
		"with vision": {Caps{Vision: true}, stored()},
		"omitted":     {Caps{OmitsUnseen: true}, left},
		"refused":     {Caps{}, nil},
	} {
		got, err := tt.caps.Seen("m", items)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (tt.want == nil) != (err != nil && err.Code == "unsupported_content" && err.Param == "model") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(stored(), items); diff != "" {
			t.Errorf("%s changes what is stored:\n%s", name, diff)
		}
	}
}
