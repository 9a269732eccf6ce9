package schema

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// TestSchemas_TakeLittleTime: whatever a schema is, it is read or refused soon. Other tests wait.
func TestSchemas_TakeLittleTime(t *testing.T) {
	repeated := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(format, "%", fmt.Sprint(i)))
		}
		return strings.Join(all, ",")
	}
	for name, schema := range map[string]string{
		"1 MiB":              `{"description":"` + strings.Repeat("a", 1<<20) + `"}`,
		"10,000 levels":      strings.Repeat(`{"items":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000),
		"doubling, allOf":    doubling(60, "allOf"),
		"doubling, anyOf":    doubling(60, "anyOf"),
		"doubling, oneOf":    doubling(60, "oneOf"),
		"keywords":           `{` + repeated(19_000, `"k%":1`) + `}`,
		"properties":         testkit.Properties(19_000, `{}`, true),
		"required":           `{"required":[` + repeated(19_000, `"k%"`) + `]}`,
		"alternatives":       `{"properties":{"a":{}},"anyOf":[` + repeated(9_000, `{"required":["k%"]}`) + `]}`,
		"apart":              `{"oneOf":[` + repeated(6_000, `{"const":"k%"}`) + `]}`,
		"merged":             `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"},`, 2000), ",") + `],"$defs":{"a":` + testkit.Properties(400, `{"type":"string"}`, true) + `,"b":` + testkit.Properties(400, `{"minLength":1}`, true) + `}}`,
		"around":             `{"properties":{` + repeated(300, `"k%":{"$ref":"#","minProperties":1}`) + `}}`,
		"a definition often": `{"properties":{` + repeated(500, `"k%":{"$ref":"#/$defs/a","description":"d"}`) + `},"$defs":{"a":` + testkit.Properties(100, `{}`, true) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			p, _ := Promised(gjson.Parse(schema), Options{Place: "s"}, new(Work))
			offered := Offer(gjson.Parse(schema), new(Work))
			if took := time.Since(begun); took > 20*time.Second { // half a second on a machine with nothing else to do
				t.Errorf("it takes %s", took)
			}
			if p != nil && len(p.Whole()) > 4<<20 || len(offered) > 4<<20 {
				t.Errorf("%d bytes", len(offered))
			}
		})
	}
}
