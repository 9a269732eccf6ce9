package mlxlm

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// longestNumber is the length of a number that is written as it is, in bytes. Python refuses numbers of thousands of digits.
const longestNumber = 32

// appendValue appends a value in a form that Python reads, without overlong numbers.
func appendValue(dst []byte, v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return jsonbody.AppendString(dst, v.Str)
	case v.Type == gjson.Number:
		return appendNumber(dst, v)
	case v.IsObject():
		dst = append(dst, '{')
		isFirst := true
		v.ForEach(func(key, value gjson.Result) bool {
			if !isFirst {
				dst = append(dst, ',')
			}
			isFirst = false
			dst = appendValue(append(jsonbody.AppendString(dst, key.Str), ':'), value)
			return true
		})
		return append(dst, '}')
	case v.IsArray():
		dst = append(dst, '[')
		isFirst := true
		v.ForEach(func(_, value gjson.Result) bool {
			if !isFirst {
				dst = append(dst, ',')
			}
			isFirst = false
			dst = appendValue(dst, value)
			return true
		})
		return append(dst, ']')
	case v.IsBool():
		return strconv.AppendBool(dst, v.Bool())
	default:
		return append(dst, "null"...)
	}
}

func appendNumber(dst []byte, v gjson.Result) []byte {
	isFinite := !math.IsInf(v.Num, 0)
	if len(v.Raw) <= longestNumber && isFinite {
		return append(dst, v.Raw...)
	}
	return strconv.AppendFloat(dst, min(max(v.Num, -math.MaxFloat64), math.MaxFloat64), 'g', -1, 64)
}
