package request

import (
	"bytes"
	"hash/fnv"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// callIDLength is the length of an engine's id of a call. Some templates demand just that many letters or digits.
const callIDLength = 9

// idMark comes before every id in the messages of a chat, since their writers make them of known members: it is in the name of the id of a call, and
// in that of a result's, and can't be within a text, whose quotes are escaped.
var idMark = []byte(`id":"`)

// withEngineIDs returns messages with the ids of calls that templates accept. It is false if there are none. The same id becomes the same in
// every request, so that prompts begin alike.
func withEngineIDs(messages []byte) (made []byte, ok bool) {
	var ids engineIDs
	for at := bytes.Index(messages, idMark); at >= 0; at = bytes.Index(messages, idMark) {
		at += len(idMark) - 1
		s := jsonbody.Scanner{Data: messages, Pos: at, Lenient: true}
		if s.Str() != nil { // was scanned
			break
		}
		made = append(append(made, messages[:at+1]...), ids.of(jsonbody.Unquoted(messages[at:s.Pos]))...)
		messages = messages[s.Pos-1:]
	}
	if made == nil {
		return nil, false
	}
	return append(made, messages...), true
}

// engineIDs are the ids of one request's calls, by those that clients know, and the other way round.
type engineIDs struct {
	known map[string][]byte
	taken map[string]bool
}

// of returns the engine's id of a call. One that is right already stays.
func (e *engineIDs) of(id []byte) []byte {
	if made := e.known[string(id)]; made != nil {
		return made
	}
	if e.known == nil {
		e.known, e.taken = map[string][]byte{}, map[string]bool{}
	}
	made := id
	if !isEngineID(id) || e.taken[string(id)] {
		hash := fnv.New64a()
		_, _ = hash.Write(id)
		sum := hash.Sum64()
		for made = engineID(sum); e.taken[string(made)]; made = engineID(sum) { // another call's
			sum++
		}
	}
	e.known[string(id)], e.taken[string(made)] = made, true
	return made
}

const idDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func isEngineID(id []byte) bool {
	return len(id) == callIDLength && len(bytes.Trim(id, idDigits)) == 0
}

func engineID(sum uint64) []byte {
	id := make([]byte, callIDLength)
	for i := range id {
		id[i] = idDigits[sum%uint64(len(idDigits))]
		sum /= uint64(len(idDigits))
	}
	return id
}
