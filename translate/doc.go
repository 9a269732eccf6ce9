// Package translate holds the wire formats: what a client's dialect says, what an engine's dialect says, and the neutral
// [Event] stream between them. It does no I/O and starts no goroutine; everything here is a function of bytes.
//
// Two ways lead through it. A client that speaks the engine's own dialect (OpenAI-style, v0) gets the engine's bytes with
// the fewest edits: [Wire.Rewriter]. Every other answer is decoded once, by [Wire.Decoder], and encoded by the dialect's
// [Encoder].
//
// A request's body is scanned once, by [Scan]; edits are spliced into its bytes, so what this project doesn't know passes
// through untouched. The only error a client sees is [Error]; one table gives its status and its envelope in each dialect.
package translate
