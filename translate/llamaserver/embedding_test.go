package llamaserver

import (
	"math"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestEmbedded_Nonsense(t *testing.T) {
	t.Parallel()
	item := func(index, embedding string) string { return `{"index":` + index + `,"embedding":` + embedding + `}` }
	good := `"` + testkit.Packed(1) + `"`
	for name, data := range map[string]string{
		"no list":     `3`,
		"too few":     `[` + item("0", good) + `]`,
		"too many":    `[` + item("0", good) + `,` + item("1", good) + `,` + item("2", good) + `]`,
		"twice":       `[` + item("0", good) + `,` + item("0", good) + `]`,
		"twice, too":  `[` + item("0", good) + `,` + item("1", good) + `,` + item("0", good) + `]`,
		"negative":    `[` + item("0", good) + `,` + item("-1", good) + `]`,
		"no base64":   `[` + item("0", good) + `,` + item("1", `"?"`) + `]`,
		"empty":       `[` + item("0", good) + `,` + item("1", `""`) + `]`,
		"three bytes": `[` + item("0", good) + `,` + item("1", `"AAAA"`) + `]`,
		"no number":   `[` + item("0", good) + `,` + item("1", `"`+testkit.Packed(float32(math.NaN()))+`"`) + `]`,
	} {
		if _, err := (Wire{}).Embedded([]byte(`{"data":`+data+`}`), 2); err == nil || err.Kind != translate.KindEngineFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Wire{}).Embedded([]byte(`{"data":[`), 1); err == nil {
		t.Error("half an answer is taken")
	}
}

func TestFault_TooLongAnInputIsAnOverflow(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"code":500,"message":"input (1201 tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`
	e := (&request.Embedding{}).Refine(Wire{}.Fault(500, []byte(said)))
	if e.Kind != translate.KindContextOverflow || e.Status() != 400 || e.Tokens != 1201 || e.Limit != 512 || e.Param != "input" {
		t.Errorf("%+v", e)
	}
	for _, message := range []string{"input (1 tokens) is fine", "input (99999999999999999999 tokens) is too large to process (current batch size: 1)", ""} {
		if _, _, ok := tooLongOf(message); ok {
			t.Errorf("%q is taken for it", message)
		}
	}
}
