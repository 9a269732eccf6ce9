// Package translate defines what dialects and engines share: the events of an answer, the items of a conversation, the
// error that clients see, and the interfaces of decoders and encoders.
//
// Each dialect that clients speak is a package below this one. It parses requests and encodes events. Each engine has a
// package, too: it builds the engine's requests and decodes its answers into events. These packages don't import each
// other. Between them stand package request, the neutral requests; package wire, the interfaces of an engine; and package
// jsonbody, the bytes of both sides.
//
// Nothing here does I/O.
package translate
