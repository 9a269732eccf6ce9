// Package faults breaks the built lmcaddy, its engines and its surroundings while clients use it, and looks at what they see.
//
//	go test -count 1 -timeout 0 -full
//
// in this folder runs each fault for many rounds, and prints a table: how many requests were answered, how many got which
// error, how many got no answer at all. -before PATH has an older lmcaddy go through the same rounds, for a column of its own;
// what it breaks is counted, and fails nothing. Without -full, most faults are shown once or twice.
//
// Each round has a home, a server and clients of its own. What has to hold whatever happens is checked in each of them: that
// every request ends, in an answer or in an error that says what to do; that what was acknowledged is there; that the next
// request is answered; that no process is left. What is chosen at random comes from a seed, which is printed; -seed sets it.
package faults
