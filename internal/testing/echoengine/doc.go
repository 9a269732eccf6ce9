// Package echoengine is a second engine, complete and small: the example of what an engine has to bring, and a test that nothing
// else has to know of it. It has a process of its own, which is the test binary run again, a format of models, and a wire format
// that has nothing in common with llama-server's or OpenAI's. It answers with what the user says, or does what the user's lines
// tell it to, see [instruction].
//
// An engine that isn't for tests has its process in supervisor/<engine>, its wire in translate/<engine>, and one line in
// node.BuiltIn.
package echoengine
