// Package harness runs the built lmcaddy for the tests of the module: in a home of its own, on a free port of the loopback
// interface, with a real llama-server and the shipped model. It knows the program from outside alone: its command line,
// its HTTP API, its log and the processes it starts.
//
// A [Home] is the world of one test. Whatever is started in it is ended when the test is over, each process by its id; a
// process that is left by then, or a file in the user's folder, fails the test.
//
// Nothing here waits for a time to pass: whatever is waited for is a condition with a deadline.
package harness
