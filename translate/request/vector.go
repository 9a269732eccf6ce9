package request

import (
	"encoding/binary"
	"math"
	"strconv"
)

// AppendVector appends a vector of little-endian float32 as a JSON array.
func AppendVector(dst, vector []byte) []byte {
	dst = append(dst, '[')
	for i := 0; i+4 <= len(vector); i += 4 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(component(vector, i)), 'g', -1, 32)
	}
	return append(dst, ']')
}

func component(vector []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(vector[at:]))
}

// ShortVector returns the first dimensions of a vector, normalized to length 1, as models trained for this expect.
func ShortVector(vector []byte, dimensions int) []byte {
	if len(vector) == dimensions*4 {
		return vector
	}
	sum := 0.0
	for i := 0; i < dimensions*4; i += 4 {
		x := float64(component(vector, i))
		sum += x * x
	}
	length := math.Sqrt(sum)
	if length == 0 {
		length = 1
	}
	short := make([]byte, 0, dimensions*4)
	for i := 0; i < dimensions*4; i += 4 {
		short = binary.LittleEndian.AppendUint32(short, math.Float32bits(float32(float64(component(vector, i))/length)))
	}
	return short
}
