// Package schema stands between the JSON schemas of clients and the engines. Nothing of a client's schema reaches an engine as it is: some make
// llama-server end, hang, or hold an answer to something else than they say.
//
// A schema is of one of two kinds. That of a tool that is only offered may lose what the engine can't express ([Offer]): it is never an error,
// since those who offer tools often can't change their schemas. A promise ([Promise]) is a schema that the answer has to match. Each of its keywords is
// rewritten to one that the engine holds the answer to, or the finished answer is checked for it ([Checker]), or it is an error.
//
// Both bound what an engine has to do ([Work]).
package schema
