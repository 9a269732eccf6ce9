// Package supervisor schedules models and requests, and runs the engines that answer them.
//
// Package schedule decides and package process runs; this package joins them. One lock guards the scheduler's State. Everything
// that happens is an Event, which is handled by the goroutine that brings it. The Effects are carried out under the lock, without
// waiting, and their results come back as events. Events carry the generation of their process, so those of a process that has been
// replaced are ignored.
//
// A [Lease] covers one upstream request. Requests beyond an instance's slots wait here, in order of arrival, because the engines'
// own queues have no bound.
package supervisor
