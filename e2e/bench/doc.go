// Package bench measures what the way through the built lmcaddy costs, beside what others cost in the same minute on the same
// machine: no proxy at all, the smallest proxy that Go makes, and plain Caddy. And how long a swap of models takes, beside
// stopping and starting the engines by hand.
//
//	go test -count 1 -timeout 0 -full
//
// in this folder prints a table, in some minutes; -profile FOLDER instead of -full writes profiles of lmcaddy under each load.
// Without either, a few requests go each way, so that all of this is known to work; their times say nothing, and are not looked
// at.
//
// Machines are noisy. So what is to be compared is measured in turn, A B C D A B C D, many times; a figure is the median of
// the rounds, and a ratio the median of the rounds' own ratios. All of them ask one process, which lmcaddy has started as its
// engine: a llama-server that answers with fixed bytes. It and the bare proxy are the test's own binary under other names.
package bench
