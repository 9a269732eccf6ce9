package request

import (
	"bytes"
	"hash/fnv"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// CallFields are the known fields of an assistant's call in the messages of a chat, as JSON; nil if they are absent. The call of a
// custom tool has an input in place of arguments.
type CallFields struct{ ID, Name, Arguments, Input []byte }

// CallFieldsOf returns the fields of a call, which was scanned. All but the id are those of its function or custom tool.
func CallFieldsOf(call []byte) CallFields {
	given := jsonbody.ObjectOf(call)
	tool := given.Get("function")
	if tool == nil {
		tool = given.Get("custom")
	}
	of := jsonbody.ObjectOf(tool)
	return CallFields{given.Get("id"), of.Get("name"), of.Get("arguments"), of.Get("input")}
}

// ReadCall returns the fields of a call at a place of a request, and its id and name.
func ReadCall(path string, call []byte) (f CallFields, id, name string, _ *translate.Error) {
	if call[0] != '{' {
		return f, "", "", jsonbody.WrongJSON(path, "an object", call)
	}
	f = CallFieldsOf(call)
	id, name = jsonbody.Unquote(f.ID), jsonbody.Unquote(f.Name)
	switch {
	case jsonbody.IsGiven(f.ID) && f.ID[0] != '"':
		return f, "", "", jsonbody.WrongJSON(path+".id", "a string", f.ID)
	case len(f.Name) == 0 || f.Name[0] != '"':
		return f, "", "", translate.Missing(path + ".function.name")
	case len(id) > jsonbody.MaxNameLength || len(name) > jsonbody.MaxNameLength:
		return f, "", "", translate.Invalid("invalid_value", path,
			`The id and the name of "`+path+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	}
	return f, id, name, nil
}

// Limits of the arguments of a call. The engine parses them again, and its objects are slow to search.
const (
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
)

// CallArguments returns the JSON object with the arguments of an earlier call. v is a string with JSON, or the object itself.
// Models and broken streams leave invalid arguments, for which an engine would refuse the whole conversation: empty ones
// become an empty object, and others are wrapped in an object.
func CallArguments(path string, v gjson.Result) (string, *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return "{}", nil
	case v.Type == gjson.String:
		arguments, err := argumentsIn(path, []byte(v.Str))
		return string(arguments), err
	case !v.IsObject():
		return "", jsonbody.WrongType(path, "a string or an object", v)
	default:
		arguments, err := argumentsIn(path, []byte(v.Raw))
		return string(arguments), err
	}
}

// AppendArguments appends the result of [CallArguments] as a JSON string. given is JSON that was scanned, or nil.
func AppendArguments(dst []byte, path string, given []byte) ([]byte, *translate.Error) {
	arguments, isGiven, err := argumentsOf(path, given)
	switch {
	case err != nil:
		return nil, err
	case isGiven:
		return append(dst, given...), nil
	default:
		return jsonbody.AppendQuoted(dst, arguments), nil
	}
}

// SetArguments sets the arguments of a call. They are the given JSON, without a copy, if that needs no change.
func SetArguments(call *translate.Item, path string, given []byte) *translate.Error {
	arguments, isGiven, err := argumentsOf(path, given)
	switch {
	case err != nil:
		return err
	case isGiven && jsonbody.IsCanonical(given):
		call.Args = given
	default:
		call.Args = jsonbody.AppendQuoted(nil, arguments)
	}
	call.AreObject = true
	return nil
}

// argumentsOf returns the text of arguments, and whether the given JSON is a string of that text.
func argumentsOf(path string, given []byte) (arguments []byte, isGiven bool, err *translate.Error) {
	switch {
	case !jsonbody.IsGiven(given):
		return []byte("{}"), false, nil
	case given[0] == '{':
		arguments, err = argumentsIn(path, given)
		return arguments, false, err
	case given[0] != '"':
		return nil, false, jsonbody.WrongJSON(path, "a string or an object", given)
	}
	text := jsonbody.Unquoted(given)
	arguments, err = argumentsIn(path, text)
	return arguments, err == nil && bytes.Equal(arguments, text), err
}

func argumentsIn(path string, text []byte) ([]byte, *translate.Error) {
	s := jsonbody.Scanner{Data: text}
	s.Space()
	if s.Pos == len(text) {
		return []byte("{}"), nil
	}
	isObject := text[s.Pos] == '{'
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad == nil && s.Pos == len(text) {
		if s.Values > maxArgumentValues {
			return nil, translate.BadValue(path, "must have at most %d values.", maxArgumentValues)
		}
		if isObject {
			return text, nil
		}
	}
	if bad != nil && s.Deep {
		return nil, translate.BadValue(path, "must not be nested more than %d levels deep.", maxArgumentDepth)
	}
	return append(jsonbody.AppendQuoted([]byte(`{"arguments":`), text), '}'), nil
}

// callIDLength is the length of an engine's id of a call. Some templates demand just that many letters or digits.
const callIDLength = 9

// idMark comes before every id in the messages of a chat, since their writers make them of known members: it ends the names of the ids
// of calls and results, and can't be within a text, whose quotes are escaped.
var idMark = []byte(`id":"`)

// withEngineIDs returns messages with the ids of calls that templates accept. It is false if there are none. The same id becomes the
// same in every request, so that prompts begin alike.
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
