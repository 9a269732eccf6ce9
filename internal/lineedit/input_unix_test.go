//go:build unix

package lineedit

import (
	"strings"
	"testing"
)

func TestInput_Packets(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("世", packet)
	for name, tt := range map[string]struct {
		pending string
		ended   bool
		want    string
		isWhole bool
	}{
		"keys":                          {"abc", false, "abc", true},
		"nothing":                       {"", false, "", false},
		"nothing more":                  {"", true, "", true},
		"a long text":                   {wide, false, wide[:packet/3*3], true},
		"a beginning of a character":    {"a\xe4\xb8", false, "a", true},
		"only that":                     {"\xe4\xb8", false, "", false},
		"what is no character":          {"a\xff\xff\xff\xff", false, "a\xff\xff\xff\xff", true},
		"a beginning of a report":       {"a\x1b[24;", false, "a", true},
		"the same, and nothing more":    {"a\x1b[24;", true, "a\x1b[24;", true},
		"an escape key":                 {"\x1b", false, "\x1b", true},
		"an interrupt, and what's next": {"a\x03b", false, "a\x03", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := &input{pending: []byte(tt.pending), hasEnded: tt.ended}
			if got, isWhole := in.next(); string(got) != tt.want || isWhole != tt.isWhole {
				t.Errorf("%q, %t, want %q, %t", got, isWhole, tt.want, tt.isWhole)
			}
		})
	}
}
