package mlxlm

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ownSampling are the sampling fields that not every engine has, by llama-server's names.
var ownSampling = request.Numbers(
	request.Number{Name: "xtc_probability", Max: 1},
	request.Number{Name: "xtc_threshold", Max: 1},
	request.Number{Name: "repeat_last_n", Min: -1, Max: math.MaxInt32, Whole: true},
)

const (
	// coldest is the lowest temperature above 0: the server divides by it.
	coldest = 1e-4
	// leastPenalty keeps quotients of a logit and repeat_penalty finite.
	leastPenalty = 0.01
	// defaultWindow is the number of last tokens that penalties consider, as on other engines; the server's own is 20.
	defaultWindow = 64
	// surelyKnown is a number of tokens that every model knows.
	surelyKnown = 256
)

// appendSampling appends the sampling fields, with the types that the server insists on.
func (w Wire) appendSampling(dst []byte, from source) []byte {
	if t, given := from.number("temperature", 0, 100); given {
		if t < coldest {
			t = 0
		}
		dst = appendField(dst, "temperature", t)
	}
	for _, name := range []string{"top_p", "min_p"} {
		if p, given := from.number(name, 0, 1); given {
			dst = appendField(dst, name, p)
		}
	}
	if k, given := from.whole("top_k", 0, math.MaxInt32); given {
		if k >= cmp.Or(w.vocabulary, surelyKnown) { // with as many tokens as there are, the server stops generating for all clients
			k = 0
		}
		dst = appendWhole(dst, "top_k", k)
	}
	dst = appendPenalties(dst, from)
	if p, given := from.number("xtc_probability", 0, 1); given {
		threshold, given := from.number("xtc_threshold", 0, 1)
		if !given {
			threshold = 0.1
		}
		if threshold <= 0.5 { // above it no two tokens are likely enough
			dst = appendFloat(dst, "xtc_probability", p)
			dst = appendFloat(dst, "xtc_threshold", threshold)
		}
	}
	biases, ok := w.biases(from.get("logit_bias")) // which checkBias has accepted
	if !ok || len(biases) == 0 {
		return append(dst, noBias...)
	}
	dst = append(dst, `,"logit_bias":{`...)
	for _, id := range slices.Sorted(maps.Keys(biases)) {
		dst = append(strconv.AppendInt(append(jsonbody.AppendComma(dst), '"'), int64(id), 10), `":`...)
		dst = strconv.AppendFloat(dst, min(max(biases[id], banned), -banned), 'g', -1, 64)
	}
	return append(dst, '}')
}

// appendPenalties appends penalties for tokens among the last ones. The server has a window for each of them, where 0 is everything.
func appendPenalties(dst []byte, from source) []byte {
	window, given := from.whole("repeat_last_n", -1, math.MaxInt32)
	switch {
	case !given:
		window = defaultWindow
	case window == 0:
		return dst
	case window < 0:
		window = 0
	}
	if p, given := from.number("repeat_penalty", leastPenalty, 100); given && p != 1 {
		dst = appendWhole(appendField(dst, "repetition_penalty", p), "repetition_context_size", window)
	}
	for _, kind := range []string{"presence", "frequency"} {
		if p, given := from.number(kind+"_penalty", -100, 100); given && p != 0 {
			dst = appendWhole(appendField(dst, kind+"_penalty", p), kind+"_context_size", window)
		}
	}
	return dst
}

// banned is added to the logit of a token that must not occur. It is finite in 16 bits.
const banned = -10000

// noBias changes nothing. Each request needs a bias, or penalties: a request without any makes the server apply those of the next
// ones to others, or to none, and stop generating for good where both are worked on at a time.
const noBias = `,"logit_bias":{"0":0}`

// biases reads logit_bias: an object of biases by token id, or an array of pairs. ok: all are for tokens of the model.
func (w Wire) biases(v gjson.Result) (all map[int]float64, ok bool) {
	all, ok = map[int]float64{}, true
	v.ForEach(func(token, bias gjson.Result) bool {
		if v.IsArray() {
			pair := bias.Array()
			if len(pair) != 2 {
				ok = false
				return false
			}
			token, bias = pair[0], pair[1]
		}
		var id int // a number, or the decimal digits of a string
		if token.Type == gjson.Number {
			id, ok = int(token.Num), token.Num >= 0 && token.Num <= math.MaxInt32 && token.Num == math.Trunc(token.Num)
		} else {
			n, err := strconv.ParseUint(token.Str, 10, 31)
			id, ok = int(n), err == nil
		}
		if ok = ok && id < w.vocabulary; !ok {
			return false
		}
		if bias.Type == gjson.False {
			all[id] = banned
		} else {
			all[id] += bias.Num
		}
		return true
	})
	return all, ok
}

// checkBias refuses biases for anything but token ids of the model: the server would write beyond its memory.
func (w Wire) checkBias(v gjson.Result) *translate.Error {
	const name = "logit_bias"
	_, ok := w.biases(v)
	switch {
	case ok:
		return nil
	case w.vocabulary == 0:
		return translate.Invalid("unsupported_value", name,
			`The number of tokens that the model knows is unknown, so its engine can't be sent a "logit_bias": leave it out.`)
	default:
		most := strconv.Itoa(w.vocabulary - 1)
		return translate.Invalid("invalid_value", name,
			theEngine+`takes a "logit_bias" only for token ids from 0 to `+most+`: leave out texts and other numbers.`)
	}
}

func appendField(dst []byte, name string, x float64) []byte {
	return strconv.AppendFloat(appendName(dst, name), x, 'g', -1, 64)
}

// appendFloat appends a number that the server wants to have a fraction.
func appendFloat(dst []byte, name string, x float64) []byte {
	number := strconv.AppendFloat(nil, x, 'g', -1, 64)
	if !bytes.ContainsAny(number, ".e") {
		number = append(number, ".0"...)
	}
	return append(appendName(dst, name), number...)
}

func appendWhole(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(appendName(dst, name), int64(n), 10)
}

func appendName(dst []byte, name string) []byte {
	return append(append(append(dst, `,"`...), name...), `":`...)
}
