// Package fetch downloads models from hubs that implement the API of huggingface.co.
//
//	jobs, err := fetch.Open(fetch.Options{Models: home.Models(), State: home.Downloads(), Hubs: hubs, Listed: …, Log: log})
//	job, err := jobs.Start(ctx, fetch.Request{Model: "qwen/qwen3-4b"})
//
// # What is downloaded
//
// A request names an entry of the built-in list of models, publisher/repository, or the URL of a hub. Jobs chooses one model
// among the repository's files: the requested quantization, or else the best one that fits this machine, with all its parts
// and its projector. The files go to <models>/<publisher>/<repository>, so the model's key is the name that was requested.
//
// # What is stored
//
// A job is a JSON file in the state folder. The bytes downloaded of a file are in <file>.part, in the file's folder, and
// <file>.part.json says which bytes these are. Both survive the process: [Open] resumes downloads. A file gets its name once
// its checksum has been verified. The file that completes the model is renamed last.
//
// # What is trusted
//
// The hub's list is trusted for the checksums of files, and for nothing else. The hub's token is sent to the hub's own address
// only. File names are checked, and every file is opened below an [os.Root] of the models folder.
//
// # Goroutines
//
// [Jobs] holds the jobs. Each job that is downloading has one goroutine, which starts others for the parallel parts of a file,
// its checksum, checkpoints and subscribers. All of them have ended when [Jobs.Close] returns.
package fetch
