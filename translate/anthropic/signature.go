package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
)

// A block of thinking has a signature, which clients send back with it and don't look into. Ours proves nothing: it is there
// because clients want one that isn't empty. Of thoughts that aren't shown it has the text, so that a tool loop can go on
// with them.
const (
	signatureShown   = "lmt1" // and a digest
	signatureOmitted = "lmo1" // and the text
)

// signature signs a thought.
func (t Thinking) signature(thought []byte) string {
	if t == ThinkingOmitted {
		return signatureOmitted + base64.StdEncoding.EncodeToString(thought)
	}
	digest := sha256.Sum256(thought)
	return signatureShown + base64.StdEncoding.EncodeToString(digest[:])
}

// signedThought is the text that a signature has, if it has one.
func signedThought(signature string) string {
	if len(signature) < len(signatureOmitted) || signature[:len(signatureOmitted)] != signatureOmitted {
		return ""
	}
	text, err := base64.StdEncoding.DecodeString(signature[len(signatureOmitted):])
	if err != nil {
		return ""
	}
	return string(text)
}
