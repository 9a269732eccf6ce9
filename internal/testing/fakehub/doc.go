// Package fakehub is a fake hub of models for tests. It implements the part of huggingface.co's API that downloads use, and
// simulates faults on request.
//
//	hub := fakehub.Start(t)
//	hub.Add("acme/tiny-GGUF", fakehub.Files{"tiny-Q4_K_M.gguf": fakehub.Random(1, 8<<20)})
//	hub.Fault(fakehub.Fault{Path: "tiny-Q4_K_M.gguf", Cut: 1 << 20, Times: 1}) // the connection breaks after a MiB, once
//	// … fetch hub.URL + "/acme/tiny-GGUF" …
//	for _, r := range hub.Requests() { … } // requests with their tokens and the bytes sent
//
// Files are sent by a second server, as real hubs do: the resolve endpoint redirects to it, so that tests notice clients that
// forward their token. Files have ETags and support ranges, including If-Range, unless a fault says otherwise.
//
// For tests outside of this module, the hub can be a process of its own (tools/fakehub), which is controlled over HTTP, below
// /_hub/.
package fakehub
