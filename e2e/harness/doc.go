// Package harness runs the built lmcaddy for the tests of the module: in a home of its own, on a free port of the loopback
// interface, with a real llama-server and the shipped model. It uses the program from outside only: its command line,
// its HTTP API, its log and the processes it starts.
//
// A [Home] is the environment of one test. Everything that is started in it is ended with the test, each process by its id;
// a process that is left after that, or a file in the user's folder, fails the test.
//
// Nothing here sleeps for a fixed time: tests wait for conditions, with a deadline.
package harness
