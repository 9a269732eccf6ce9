package schema

import (
	"strings"
	"testing"
)

func TestPattern_Bounds(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		``, `^a$`, `^[a-z0-9]+(-[a-z0-9]+)*$`, `^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$`, `^.{0,1000}$`, `^(\d{1,3}\.){3}\d{1,3}$`,
		`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`, `^(a?){32}$`, `^.{0,1500}$`, `)(a?){33}`, `^a{`, `^{1,2}`, `)a(`, `[`, `\`, `(`,
		`^(Jan|Feb|Mar)$`, `^([a-z]{2}(-[A-Z]{2})?,){50}$`, `^[]{1,9}$`,
		`^([` + strings.Repeat("a", 1500) + `]){2}$`, `^([` + strings.Repeat(`\]`, 700) + `]b){9}$`, `^(a?){20}(b?){12}$`, `^((a?){4}b){20}$`, `^((a?){16}|(b?){16})$`,
	} {
		if says := costOf(p); says != "" {
			t.Errorf("%q: %s", p, says)
		}
	}
	for p, says := range map[string]string{
		`^(a?){33}$`:                             "may be empty",
		`^((a?){10}){10}$`:                       "may be empty",
		`^(a?){20}(b?){13}$`:                     "may be empty",
		`^((a?){16}|(b?){17})$`:                  "may be empty",
		`^((a?){17}b(c?){16}){2}$`:               "may be empty",
		`^(a(b?){32})?(c?)$`:                     "may be empty",
		`^((a*)|b){40}$`:                         "may be empty",
		`^` + strings.Repeat("a?", 33):           "may be empty",
		`^` + strings.Repeat("(a|)", 33):         "may be empty",
		`^(a{30}b){30}(c{30}d){30}(e{30}f){30}$`: "repeats to",
		`^a{3,2}$`:                               "at least more often",
		`^a{2001}`:                               "repeats to",
		`^a{99999999999999999999}`:               "repeats to",
		`^a{2001,}`:                              "repeats to",
		`^a{1,2001}`:                             "repeats to",
		strings.Repeat("a", 2049):                "bytes",
		strings.Repeat("(", 40) + "a" + strings.Repeat(")", 40): "groups within",
	} {
		if got := costOf(p); !strings.Contains(got, says) {
			t.Errorf("%q: %q, want one about %s", p, got, says)
		}
	}
}
