// Package secret makes secrets that were sent to another server unreadable in what that server answers.
package secret

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// shortest is the length of the shortest secret that is looked for in answers, in bytes. Many texts have a shorter one by chance.
const shortest = 6

// Mask returns the body of an answer in which secrets that the server was sent are made unreadable, also as JSON spells them: some servers
// quote them in their errors, which clients and logs get.
func Mask(body io.ReadCloser, secrets ...string) io.ReadCloser {
	masked := &maskedBody{body: body}
	for _, secret := range secrets {
		if len(secret) < shortest {
			continue
		}
		escaped, _ := json.Marshal(secret) // a string
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(secret)
		for _, spelt := range [][]byte{[]byte(secret), escaped[1 : len(escaped)-1], bytes.Trim(plain.Bytes(), "\"\n")} {
			isKnown := slices.ContainsFunc(masked.secrets, func(other []byte) bool { return bytes.Equal(other, spelt) })
			if masked.longest = max(masked.longest, len(spelt)); !isKnown {
				masked.secrets = append(masked.secrets, spelt)
			}
		}
	}
	if masked.secrets == nil {
		return body
	}
	return &bufferedBody{bufio.NewReaderSize(masked, 4*masked.longest), body}
}

// maskedBody is a body in which each byte of a secret is an asterisk. Its reader must have room for more than a secret.
type maskedBody struct {
	body    io.Reader
	secrets [][]byte
	longest int    // of them, in bytes
	held    []byte // what may be the beginning of a secret
}

func (b *maskedBody) Read(p []byte) (int, error) {
	for {
		n := copy(p, b.held)
		b.held = b.held[:0]
		more, err := b.body.Read(p[n:])
		text := p[:n+more]
		for _, secret := range b.secrets {
			mask(text, secret)
		}
		if err != nil {
			return len(text), err
		}
		begun := b.begun(text)
		b.held = append(b.held, text[len(text)-begun:]...)
		if len(text) > begun {
			return len(text) - begun, nil
		}
	}
}

// begun returns how many bytes at the end of a text may be the beginning of a secret.
func (b *maskedBody) begun(text []byte) int {
	for n := min(len(text), b.longest-1); n > 0; n-- {
		end := text[len(text)-n:]
		if slices.ContainsFunc(b.secrets, func(secret []byte) bool { return bytes.HasPrefix(secret, end) }) {
			return n
		}
	}
	return 0
}

func mask(text, secret []byte) {
	for at := bytes.Index(text, secret); at >= 0; at = bytes.Index(text, secret) {
		for i := range secret {
			text[at+i] = '*'
		}
		text = text[at+len(secret):]
	}
}

type bufferedBody struct {
	*bufio.Reader
	io.Closer
}
