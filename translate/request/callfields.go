package request

import "github.com/lmcaddy/lmcaddy/translate/jsonbody"

// CallFields are the known fields of an assistant's call in the messages of a chat, as JSON; nil if they are absent. The call of a custom tool has
// an input in place of arguments.
type CallFields struct{ ID, Name, Arguments, Input []byte }

// CallFieldsOf returns the fields of a call, which was scanned. All but the id are those of its function or custom tool.
func CallFieldsOf(call []byte) (f CallFields) {
	for name, value := range jsonbody.Members(call) {
		switch string(name) {
		case "id":
			f.ID = value
		case "function", "custom":
			for name, value := range jsonbody.Members(value) {
				switch string(name) {
				case "name":
					f.Name = value
				case "arguments":
					f.Arguments = value
				case "input":
					f.Input = value
				}
			}
		}
	}
	return f
}
