// Package jsonbody reads and edits the bytes of requests and streams: a request's JSON is checked and its fields are found in one
// pass, an edit leaves what it doesn't change as it stands, and frames of server-sent events are found in any cutting of a stream.
package jsonbody
