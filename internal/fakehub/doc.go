// Package fakehub is a hub of models for tests: it speaks the part of huggingface.co's API that fetching uses, and shows
// faults on command.
//
//	hub := fakehub.Start(t)
//	hub.Add("acme/tiny-GGUF", fakehub.Files{"tiny-Q4_K_M.gguf": fakehub.Random(1, 8<<20)})
//	hub.Fault(fakehub.Fault{Path: "tiny-Q4_K_M.gguf", Cut: 1 << 20, Times: 1}) // the connection breaks after a MiB, once
//	// … fetch hub.URL + "/acme/tiny-GGUF" …
//	for _, r := range hub.Requests() { … } // what was asked, with which token, and the bytes that were sent
//
// Files are sent from a second server, as hubs do: the resolve endpoint redirects to it, so that a client that carries its
// token along is found out. Each has an ETag and knows ranges, If-Range included, unless a fault says otherwise.
//
// The same runs as a process of its own, for tests that know nothing of this module (tools/fakehub): what the methods here
// do is then done over HTTP, below /_hub/.
package fakehub
