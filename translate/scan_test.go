package translate_test

import (
	"fmt"
	"strings"
)

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}

func manyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"f%d":%d`, i, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}
