// Package faults breaks the built lmcaddy, its engines and its surroundings while clients use it, and checks what clients see.
//
//	go test -count 1 -timeout 0 -full
//
// in this folder runs each fault for many rounds, and prints a table: the number of requests that were answered, that got
// each error, and that got no answer at all. -before PATH runs an older lmcaddy through the same rounds, for a column of its
// own; its failures are counted, but don't fail the test. Without -full, most faults run once or twice.
//
// Each round has its own home, server and clients, and checks that every request ends, with an answer or with an error that
// says what to do; that acknowledged data is present; that the next request is answered; and that no process is left. Random
// choices come from a seed, which is printed; -seed sets it.
package faults
