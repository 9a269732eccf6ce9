package anthropic

import "strconv"

// CountBody is the answer of POST /v1/messages/count_tokens.
func CountBody(tokens int) []byte { return []byte(`{"input_tokens":` + strconv.Itoa(tokens) + `}`) }
