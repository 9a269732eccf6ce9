// Package jsonbody reads and edits the bytes of requests and streams. A request's JSON is validated and its fields are
// located in one pass; an edit copies unchanged bytes as they are; and a stream is split into server-sent events wherever
// its reads end.
package jsonbody
