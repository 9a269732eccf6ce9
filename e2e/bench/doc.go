// Package bench measures the overhead of the built lmcaddy, compared with others in the same minute on the same machine: no
// proxy at all, the smallest proxy in Go, and plain Caddy. It also measures a swap of models, compared with stopping and
// starting the engines by hand; and conversations whose engines end between their turns, with and without saved states, of a
// model with random weights whose prompts take seconds; and the way of a request from one node of a cluster to another.
//
//	go test -count 1 -timeout 0 -full
//
// in this folder prints a table after some minutes, and with -before BINARY also what has changed since an older lmcaddy. With
// -profile FOLDER instead of -full, it writes profiles of lmcaddy under each load. Without either, only a few requests are sent
// to each target, to test all of this; their times aren't checked.
//
// Machines are noisy, so the targets are measured in turn, A B C D A B C D, many times; a figure is the median of the rounds,
// and a ratio is the median of the rounds' ratios. All targets use one process, which lmcaddy has started as its engine: a
// llama-server that answers with fixed bytes. It and the minimal proxy are the test's own binary under other names.
package bench
