package request

import "github.com/lmcaddy/lmcaddy/translate/jsonbody"

// CallFields are the known fields of an assistant's call in the messages of a chat, as JSON; nil if they are absent.
type CallFields struct{ ID, Name, Arguments []byte }

// CallFieldsOf returns the fields of a call, which was scanned. The last two are those of its function.
func CallFieldsOf(call []byte) (f CallFields) {
	for name, value := range jsonbody.Members(call) {
		switch string(name) {
		case "id":
			f.ID = value
		case "function":
			for name, value := range jsonbody.Members(value) {
				switch string(name) {
				case "name":
					f.Name = value
				case "arguments":
					f.Arguments = value
				}
			}
		}
	}
	return f
}
