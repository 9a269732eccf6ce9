package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

func TestCopyFields_Seed(t *testing.T) {
	t.Parallel()
	for seed, want := range map[string]string{ // what the engine is sent; empty if the request is refused
		"7":                      "7",
		"1e2":                    "100",
		"-1":                     "-1",
		"-2":                     "4294967293",
		"-0":                     "0",
		"4294967294":             "4294967294",
		"4294967295":             "0",
		"1.5":                    "",
		"1e999":                  "",
		"-1e999":                 "",
		"100000000000000000000":  "3470220850",
		"-100000000000000000000": "824746445",
		"9007199254740993":       "2097153",
		"9223372036854775807":    "2147483647",
		"-9223372036854775808":   "2147483647",
		"18446744073709551615":   "0",
		"18446744073709551614":   "4294967294",
	} {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			body, bad := jsonbody.Scan([]byte(`{"seed":` + seed + `}`))
			if bad != nil {
				t.Fatal(bad)
			}
			var e jsonbody.Edit
			bad = CopyFields(body, &e, nil, "seed")
			if bad != nil {
				if want != "" || bad.Param != "seed" {
					t.Error(bad)
				}
				return
			}
			if diff := cmp.Diff(`{"seed":`+want+`}`, string(e.Apply(&jsonbody.Body{}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
