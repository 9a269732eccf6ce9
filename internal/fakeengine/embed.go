package fakeengine

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"

	"github.com/tidwall/gjson"
)

// embed answers with small unit vectors that depend on the texts.
func (g *generation) embed(body string) error {
	if err := g.check(); err != nil {
		return err
	}
	data := []object{}
	for i, text := range gjson.Get(body, "input").Array() {
		vector := make([]float32, dimensions)
		vector[tokenID(text.String())%dimensions] = 1
		item := object{"object": "embedding", "index": i, "embedding": vector}
		if gjson.Get(body, "encoding_format").String() == "base64" {
			item["embedding"], item["encoding_format"] = packed(vector), "base64"
		}
		data = append(data, item)
	}
	writeBody(g.w, http.StatusOK, encode(object{
		"object": "list", "data": data, "usage": object{"prompt_tokens": g.prompt, "total_tokens": g.prompt},
		"model": gjson.Get(body, "model").String(), // the request's, unlike in chats
	}))
	return nil
}

// packed is a vector as little-endian numbers in base64.
func packed(vector []float32) string {
	var raw []byte
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
