// Package translate has what the packages below it share, and what belongs to no dialect and no engine: the events of an answer,
// the items of a conversation, the only error that clients see, and how decoders and encoders fit together.
//
// A client's dialect is a package: openai (with v0), anthropic, native. It reads requests, and encodes events. An engine is a
// package, too: llamaserver. It makes the engine's requests, and decodes its answers to events. None of them knows another. What
// they have between them is request, the neutral requests, wire, which says what an engine's package does, and jsonbody.
//
// Nothing here does I/O.
package translate
