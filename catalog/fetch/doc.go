// Package fetch downloads models from hubs that speak the API of huggingface.co, into the models folder.
//
//	jobs, err := fetch.Open(fetch.Options{Models: home.Models(), State: home.Downloads(), Hubs: hubs, Listed: …, Log: log})
//	job, err := jobs.Start(ctx, fetch.Request{Model: "qwen/qwen3-4b"})
//
// # What is fetched
//
// A request names an entry of the shipped catalog, publisher/repository, or a hub's URL. From the repository's files one
// model is chosen: the quantization that was asked for, or the best one that fits this machine; all parts of it, and its
// projector. It goes to <models>/<publisher>/<repository>, so that it gets the key that it was asked for by.
//
// # What is kept
//
// A job is a JSON file in the state folder. What was fetched of a file is <file>.part beside the file's place, and
// <file>.part.json says which bytes of it are there. Both outlive the process: [Open] goes on with what was under way. A
// file gets its name when its checksum holds, and the file that makes a model of the others gets it last.
//
// # Whom is trusted
//
// The hub is believed what its list says of a file's checksum, and nothing else. Its token goes to its own address only.
// Names are checked, and every file is opened below an [os.Root] of the models folder.
//
// # Who does what
//
// [Jobs] holds the jobs. One goroutine runs each job that is downloading, with some more that belong to it: for parallel
// parts of a file, its checksum, checkpoints and those who watch. None outlives [Jobs.Close].
package fetch
