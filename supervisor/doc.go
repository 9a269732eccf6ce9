// Package supervisor owns the engine processes: it launches one for each loaded model, knows when it is ready, lends its
// slots to requests, and ends it.
//
// One goroutine, [Supervisor.loop], owns the [State]. Whatever happens reaches it as an [Event]; [Step], a pure function,
// says what follows as a list of [Effect] values; the loop carries them out without ever waiting, and what they lead to
// comes back as events. So every schedule can be tested without a process and without a clock.
//
// Each process has one goroutine of its own for its whole life, on a locked thread: on Linux the kernel ends a child when
// the thread that started it ends. A second one walks through the steps of stopping it, once it is to stop. Events of a
// process that has been replaced are known by its generation, and ignored.
//
// A [Lease] covers one upstream request. Requests beyond an instance's slots wait here, in order of arrival, since the
// engines would queue without bound.
package supervisor
