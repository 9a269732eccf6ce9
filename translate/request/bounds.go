package request

// The bounds of a conversation. No honest one comes near.
const (
	MaxMessages = 16384
	MaxParts    = 4096 // of one message's content
	MaxCalls    = 256  // of one message

)

// MaxTools bounds the tools of one request.
const MaxTools = 1024
