package hub

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	bitsWord = regexp.MustCompile(`(?i)(?:^|[-._])(\d+)[-_]?bits?(?:$|[-._])`)
	digits   = regexp.MustCompile(`\d+`)
)

// normalQuantization returns one spelling of a quantization for q4-k-m, Q4.K.M and Q4_K_M.
func normalQuantization(name string) string {
	name = strings.ToUpper(strings.TrimSpace(name))
	prefix := ""
	if rest, ok := strings.CutPrefix(name, "UD-"); ok {
		prefix, name = "UD-", rest
	}
	name = strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(name)
	if m := bitsWord.FindStringSubmatch(name); m != nil { // "4 bits"
		return m[1] + "BIT"
	}
	switch name {
	case "FP16":
		name = "F16"
	case "FP32":
		name = "F32"
	}
	return prefix + name
}

// BitsOf returns the approximate bits per weight of a quantization; 0 if unknown.
func BitsOf(quantization string) int {
	name := strings.TrimPrefix(normalQuantization(quantization), "UD-")
	switch {
	case strings.Contains(name, "FP4"):
		return 4
	case name == "":
		return 0
	}
	n, err := strconv.Atoi(digits.FindString(name))
	if err != nil {
		return 0
	}
	return n
}

// fourBits are the quantizations with four bits, best first.
var fourBits = []string{
	"Q4_K_M", "UD-Q4_K_XL", "Q4_K_XL", "Q4_K_L", "Q4_K_S", "Q4_K", "MXFP4_MOE", "MXFP4", "NVFP4", "IQ4_NL", "IQ4_XS", "Q4_1", "Q4_0",
}

// compareVariants orders variants by preference: four bits in the order of fourBits, then more bits, fewest first, then fewer
// bits, most first, then unknown ones.
func compareVariants(a, b variant) int {
	return cmp.Or(
		cmp.Compare(tier(a), tier(b)),
		cmp.Compare(fourBitRank(a), fourBitRank(b)),
		cmp.Compare(distance(a), distance(b)),
		cmp.Compare(middling(a), middling(b)),
		cmp.Compare(b.size(), a.size()),
		cmp.Compare(a.name, b.name),
	)
}

func tier(v variant) int {
	switch bits := BitsOf(v.quantization); {
	case bits == 0:
		return 3
	case bits == 4:
		return 0
	case bits > 4:
		return 1
	default:
		return 2
	}
}

func fourBitRank(v variant) int {
	if tier(v) != 0 {
		return 0
	}
	if i := slices.Index(fourBits, normalQuantization(v.quantization)); i >= 0 {
		return i
	}
	return len(fourBits)
}

func distance(v variant) int {
	d := BitsOf(v.quantization) - 4
	return max(d, -d)
}

// middling prefers the most common quantization among those with the same number of bits.
func middling(v variant) int {
	if strings.HasSuffix(normalQuantization(v.quantization), "_K_M") {
		return 0
	}
	return 1
}
