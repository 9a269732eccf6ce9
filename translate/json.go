package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// appendJSON appends v's JSON, with <, > and & as they are. It is for values of this package's own types, which can't
// fail to encode.
func appendJSON(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func itoa(n int) string { return strconv.Itoa(n) }
