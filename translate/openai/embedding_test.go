package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestParseEmbedding_Refuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:                  "missing_required_parameter input",
		`{"input":null}`:      "missing_required_parameter input",
		`{"input":""}`:        "invalid_value input",
		`{"input":[]}`:        "invalid_value input",
		`{"input":["a",""]}`:  "invalid_value input",
		`{"input":[[]]}`:      "invalid_type input",
		`{"input":["a",[1]]}`: "invalid_type input",
		`{"input":3}`:         "invalid_type input",
		`{"input":["` + strings.Repeat(`a","`, maxInputs) + `a"]}`: "invalid_value input",
		`{"input":"a","dimensions":0}`:                             "invalid_value dimensions",
		`{"input":"a","dimensions":"3"}`:                           "invalid_type dimensions",
		`{"input":"a","encoding_format":"f16"}`:                    "invalid_value encoding_format",
		`{"input":"a","encoding_format":3}`:                        "invalid_type encoding_format",
	} {
		_, err := ParseEmbedding(testkit.Scan(t, body))
		if err == nil || err.Code+" "+err.Param != want || err.Status() != 400 {
			t.Errorf("%.60s: %+v, want %s", body, err, want)
		}
	}
}

func TestEmbedding_ShortenedVectorsAreUnitVectors(t *testing.T) {
	t.Parallel()
	short := request.ShortVector(testkit.Vector(3, 4, 12), 2)
	if diff := cmp.Diff(testkit.Vector(0.6, 0.8), short); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(testkit.Vector(0, 0), request.ShortVector(testkit.Vector(0, 0, 1), 2)); diff != "" {
		t.Errorf("nothing is left (-want +got):\n%s", diff)
	}
}
