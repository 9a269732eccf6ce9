package anthropic

import (
	"crypto/sha256"
	"encoding/base64"
)

// A block of thinking has a signature, which is opaque to clients and sent back by them. Ours proves nothing: clients require
// one that isn't empty. If the thinking isn't shown, the signature has its text, so that a tool loop can continue with it.
const (
	signatureShown   = "lmt1" // followed by a digest
	signatureOmitted = "lmo1" // followed by the text
)

// signature returns the signature of a block of thinking.
func (t Thinking) signature(thought []byte) string {
	if t == ThinkingOmitted {
		return signatureOmitted + base64.StdEncoding.EncodeToString(thought)
	}
	digest := sha256.Sum256(thought)
	return signatureShown + base64.StdEncoding.EncodeToString(digest[:])
}

// signedThought returns the text in a signature, if it has any.
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
