package testkit

import (
	"encoding/base64"
	"encoding/binary"
	"math"
)

// Vector returns the bytes of an embedding: float32 in little-endian order.
func Vector(components ...float32) []byte {
	var raw []byte
	for _, x := range components {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return raw
}

// Packed returns an embedding in base64.
func Packed(components ...float32) string {
	return base64.StdEncoding.EncodeToString(Vector(components...))
}
