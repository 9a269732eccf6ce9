package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// properties is an object schema with so many properties.
func properties(n int, inner string, required bool) string {
	var props, names []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"p%d":%s`, i, inner))
		names = append(names, fmt.Sprintf(`"p%d"`, i))
	}
	schema := `{"type":"object","properties":{` + strings.Join(props, ",") + `}`
	if required {
		schema += `,"required":[` + strings.Join(names, ",") + `]`
	}
	return schema + `}`
}

// The schemas of all tools count together.
func TestSchema_ToolsCountTogether(t *testing.T) {
	t.Parallel()
	tool := `{"type":"function","function":{"name":"a","parameters":` + properties(200, `{"type":"string"}`, false) + `}}`
	if _, err := readTools(gjson.Parse("[" + tool + "," + tool + "]")); err != nil {
		t.Error(err)
	}
	_, err := readTools(gjson.Parse("[" + tool + "," + tool + "," + tool + "]"))
	if err == nil || err.Param != "tools[2].function.parameters" {
		t.Errorf("error %v, want one about the third tool", err)
	}
}
