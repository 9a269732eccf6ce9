package request

import "strings"

func nested(open, inner, end string, depth int) string {
	return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
}
