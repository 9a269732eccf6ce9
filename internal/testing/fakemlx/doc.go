// Package fakemlx is a fake mlx_lm.server, for machines that can't run the real one and for faults that it can't be made to show on
// command.
//
// It runs as the re-executed test binary, as internal/testing/fakeengine does, and is used in the same way:
//
//	func TestMain(m *testing.M) {
//		fakemlx.MainIfChild() // never returns in a child
//		os.Exit(m.Run())
//	}
//
//	e := fakemlx.Install(t, &fakemlx.Script{Rules: []fakekit.Rule{{
//		Answer: fakekit.Answer{Text: "Hello"},
//		Cues:   []fakekit.Cue{{After: 3, Gate: "third", Do: fakekit.Fault}},
//	}}})
//	// … start e.Path with --model and --port, send it a request …
//	e.Wait(t, fakekit.At("third")) // three tokens are with the client
//	e.Release("third")             // now the generation thread dies
//
// The rules, answers, cues, gates and the journal are those of internal/testing/fakekit. e.Path is an executable named mlx_lm.server. Beside it are
// mlx_lm, which knows --version and server, and python3, which knows -m mlx_lm.
//
// Without a script it answers "Hello from the fake engine.". A [Backend] makes it answer as a real small model does: it starts a
// llama-server and translates between the two contracts.
//
// A request for one token (max_tokens is 1) is how it is found out that the model is loaded, and how a prompt is counted. It isn't numbered, so
// that Nth counts the requests of clients, and a rule without Contains lends it only PromptTokens and CachedTokens.
//
// What it does is what mlx_lm.server 0.32.0 was seen to do, faults included: it answers by HTTP/1.0, closes the connection without a
// byte where a parameter is wrong, loads in the background while /health is fine, and lives on as a deaf process when its
// generation thread has died. contract_test.go is the list, and can be run against a real server.
//
// A process owns a goroutine for each connection, one for each request that generates in the batch, and one that is the real
// server's generation thread.
package fakemlx
