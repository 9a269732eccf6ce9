// Package fakeengine is a fake llama-server, for the faults that a real one can't be made to show on command.
//
// It runs as the re-executed test binary, so nothing has to be built or found. A test package lets the children in first:
//
//	func TestMain(m *testing.M) {
//		fakeengine.MainIfChild() // never returns in a child
//		os.Exit(m.Run())
//	}
//
// and a test installs an engine, gives e.Path to what launches engines, and asks the journal what the children saw:
//
//	e := fakeengine.Install(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
//		Cues: []fakeengine.Cue{{After: 3, Gate: "third", Do: fakeengine.Crash}},
//	}}})
//	// … start e.Path, send it a chat request …
//	e.Wait(t, fakeengine.At("third")) // three deltas are with the client
//	e.Release("third")                // now it kills itself
//
// Every installed engine has a folder of its own: a link named llama-server to the test binary, script.json, journal.jsonl and the
// gates. A child finds them beside its own argv[0], since nothing may rely on the environment, which launchers scrub. The script is read
// anew at each decision (a start, a request, a request to stop), so [Engine.Set] works on running children.
//
// It speaks as llama-server 0.7.0 (build 11669) was seen to. It does not look at the model's file, and of the flags it obeys only those in
// the type args. For prompts that it is asked to show, it looks
// for the name of a switch there. Only with --slot-save-path does it look at what its slots hold, and at the content of the model's file, on which their
// states depend. It doesn't imitate the log's settings, sampling, grammars, /metrics, or the real server's delay in noticing
// that the client of an unstreamed request has gone.
//
// A child owns one goroutine for each connection (net/http's), one for standard input in child mode, one for signals and one that ends
// the process when its test is over. Install's cleanup kills by process id whatever the journal says is left.
package fakeengine
