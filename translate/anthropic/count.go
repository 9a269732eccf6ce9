package anthropic

import "strconv"

// CountBody returns the response of POST /v1/messages/count_tokens.
func CountBody(tokens int) []byte { return []byte(`{"input_tokens":` + strconv.Itoa(tokens) + `}`) }
