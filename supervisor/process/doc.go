// Package process runs engines. A [Program] says how an engine is launched, what its output means, and how it is stopped; a
// [Process] is one run of it, in its own folder and, on Linux, its sandbox. It reports what it sees as the scheduler's events, and
// is told what to do by whoever owns it: it decides nothing about other processes.
//
// Each process has one goroutine for its whole life, on a locked thread: on Linux the kernel kills a child when the thread that started it
// exits. A second goroutine runs the stop steps when the process has to stop.
package process
