// Package fakekit is what the fake engines for tests have in common: the re-executed test binary as a program with a folder of its own,
// the script that says how its processes behave, the gates at which they wait, and the journal of what they saw.
//
// In the test's process there is a [Program]; in each process started from it, a [Child]. They share nothing but the program's folder, which
// a child finds beside its own argv[0], since nothing may rely on the environment, which launchers scrub.
//
// [Rule], [Answer] and [Cue] are how a script says what is answered.
package fakekit
