package warm

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// secret is the content of the file of the key.
type secret [32]byte

func newSecret() (k secret) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// chains returns the key of the chains of prompts.
func (k *secret) chains() prefix.Key {
	return prefix.Key(binary.LittleEndian.Uint64(k.mac("the chains of prompts", nil)))
}

// mac authenticates a text at a place.
func (k *secret) mac(place string, text []byte) []byte {
	m := hmac.New(sha256.New, k[:])
	_, _ = fmt.Fprintf(m, "%s\n%s", place, text)
	return m.Sum(nil)
}

// crypt encrypts the chain of a state, or decrypts it. Sums of a chain would tell a reader of the file whether a prompt that he
// guesses is this one. A place never has another chain.
func (k *secret) crypt(place string, chain []byte) []byte {
	block, err := aes.NewCipher(k.mac("the encryption of chains", nil))
	if err != nil {
		panic(err) // 32 bytes are a key of AES-256
	}
	out := make([]byte, len(chain))
	cipher.NewCTR(block, k.mac("the chain of "+place, nil)[:aes.BlockSize]).XORKeyStream(out, chain)
	return out
}
