// Package request has the requests that an engine can be sent, whatever dialect they came in: chats, text completions, embeddings
// and ranks. Their fields have the names of OpenAI's API, since engines have them, too. It checks what a field may be, so that an
// engine gets nothing that wasn't looked at.
package request
