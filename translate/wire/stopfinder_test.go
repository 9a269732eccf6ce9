package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStopFinder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stops  []string
		pieces []string
		want   []string // text emitted after each piece and at the end
		met    string
	}{
		"within a piece":                   {[]string{"x"}, []string{"a", "bxc", "d"}, []string{"a", "b", "", ""}, "x"},
		"over several pieces":              {[]string{"END"}, []string{"aE", "N", "Db"}, []string{"a", "", "", ""}, "END"},
		"a beginning that isn't one":       {[]string{"END"}, []string{"aE", "N", "C", "E"}, []string{"a", "", "ENC", "", "E"}, ""},
		"a beginning within a beginning":   {[]string{"aab"}, []string{"aa", "a", "a", "b"}, []string{"", "a", "a", "", ""}, "aab"},
		"the one that is complete first":   {[]string{"abc", "b"}, []string{"abc"}, []string{"a", ""}, "b"},
		"the longest at the same end":      {[]string{"c", "abc", "bc"}, []string{"zabc"}, []string{"z", ""}, "abc"},
		"no more than what may be one":     {[]string{"abcd", "cx"}, []string{"zabc", "y"}, []string{"z", "abcy", ""}, ""},
		"more than a byte to a character":  {[]string{"é"}, []string{"è", "aéb"}, []string{"è", "a", ""}, "é"},
		"the beginning of the answer":      {[]string{"\n"}, []string{"\n", "a"}, []string{"", "", ""}, "\n"},
		"one that never comes":             {[]string{"zebra"}, []string{"ze", "bu"}, []string{"", "zebu", ""}, ""},
		"a beginning at the end of a text": {[]string{"ab"}, []string{"xa"}, []string{"x", "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newStopFinder(tt.stops)
			var got []string
			for _, p := range tt.pieces {
				if f.met == "" {
					got = append(got, f.feed(p))
				} else {
					got = append(got, "")
				}
			}
			got = append(got, f.rest())
			for len(got) < len(tt.want) {
				got = append(got, "")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || f.met != tt.met {
				t.Errorf("met %q; (-want +got):\n%s", f.met, diff)
			}
		})
	}
}

// FuzzStopFinder checks that the pieces make no difference and that no part of a stop string is emitted.
func FuzzStopFinder(f *testing.F) {
	f.Add("The END is near", "END", "is", 3)
	f.Add("aaabaaab", "aab", "ba", 1)
	f.Fuzz(func(t *testing.T, text, a, b string, size int) {
		if a == "" || b == "" || size < 1 {
			return
		}
		whole := newStopFinder([]string{a, b})
		want := whole.feed(text)
		want += whole.rest()
		parts := newStopFinder([]string{a, b})
		got := ""
		for rest := text; rest != "" && parts.met == ""; {
			n := min(size, len(rest))
			got += parts.feed(rest[:n])
			rest = rest[n:]
		}
		got += parts.rest()
		if got != want || parts.met != whole.met || strings.Contains(got, a) || strings.Contains(got, b) {
			t.Errorf("%q of %q, stopped by %q; in one piece %q, stopped by %q", got, text, parts.met, want, whole.met)
		}
	})
}
