package request

import "github.com/lmcaddy/lmcaddy/translate/jsonbody"

// Arrange changes the messages in e, the edit for an engine of a chat's body, to those that the model's template takes.
func Arrange(body *jsonbody.Body, e *jsonbody.Edit) {
	if messages, ok := withEngineIDs(e.ValuePieces(body, "messages")); ok {
		e.SetPieces("messages", messages)
	}
}
