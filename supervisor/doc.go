// Package supervisor owns the engine processes. It launches one for each loaded model, notices when it is ready, leases its
// slots to requests, and stops it.
//
// One lock guards the [State]. Everything that happens is an [Event], which is handled by the goroutine that brings it. [Step], a
// pure function, returns the consequences as a list of [Effect] values. They are carried out under the lock, without waiting, and their
// results come back as events. So every schedule can be tested without a process and without a clock.
//
// Each process has one goroutine for its whole life, on a locked thread: on Linux the kernel kills a child when the thread
// that started it exits. A second goroutine runs the stop steps when the process has to stop. Events carry the generation
// of their process, so those of a process that has been replaced are ignored.
//
// A [Lease] covers one upstream request. Requests beyond an instance's slots wait here, in order of arrival, because the
// engines' own queues have no bound.
package supervisor
