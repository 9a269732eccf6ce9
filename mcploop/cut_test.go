package mcploop

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// The longest texts are cut to one length, and the model is told by how much.
func TestGivenTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lengths []int // of the texts, in tokens
		most    []int // tokens that they may have together, one after the other
		want    []int
	}{
		"none":                      {nil, []int{100}, nil},
		"all fit":                   {[]int{10, 5000}, []int{5010}, []int{10, 5000}},
		"they share":                {[]int{5000, 9000}, []int{4000}, []int{2000, 2000}},
		"a short one leaves more":   {[]int{9000, 1000, 9000}, []int{5000}, []int{2000, 1000, 2000}},
		"a little of each is given": {[]int{5000, 100, 5000}, []int{1}, []int{128, 100, 128}},
		"cut again":                 {[]int{5000, 900}, []int{3000, 2000}, []int{1100, 900}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var given []translate.Part
			for _, length := range tt.lengths {
				given = append(given, translate.Part{Text: strings.Repeat("7", length)}, translate.Part{Media: &translate.Media{}})
			}
			texts := textsOf(given)
			for _, most := range tt.most {
				texts.cut(most)
			}
			for i, length := range tt.lengths {
				want := strings.Repeat("7", tt.want[i])
				if length > tt.want[i] {
					want += fmt.Sprintf("\n[The result is cut: %d more bytes were left out.]", length-tt.want[i])
				}
				if diff := cmp.Diff(want, given[2*i].Text); diff != "" {
					t.Errorf("text %d (-want +got):\n%s", i, diff)
				}
			}
			if texts.cut(tt.most[len(tt.most)-1]) {
				t.Error("what was cut is cut again")
			}
		})
	}
}

// The estimates are near to what vocabularies of real models have, and seldom below.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                      0,
		"The river is red.":     5,
		"an internationalist":   4,
		"  if x:":               3,
		"{\"a\": 12}\n":         9,
		"76d2b229":              8,
		strings.Repeat("x", 50): 3 + 32,
		strings.Repeat(" ", 40): 10,
		"река 河 😀":              7,
	} {
		if got, size := measured(text, math.MaxInt); got != want || size != len(text) {
			t.Errorf("%q has %d tokens in %d bytes, want %d", text, got, size, want)
		}
	}
	if got, size := measured("a é😀", 2); got != 2 || size != len("a é") {
		t.Errorf("a part has %d tokens in %d bytes", got, size)
	}
}
