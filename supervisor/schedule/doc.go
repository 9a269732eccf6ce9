// Package schedule decides which models are loaded, which request gets which slots, and what leaves for it. It does no I/O, starts
// no goroutine and reads no clock, and imports nothing that could.
//
// A [State] is all that it knows. [Step] applies an [Event] to it, something that has happened, and returns the consequences as [Effect]
// values in order. Whoever owns the State carries them out; their results come back as events. Time is an event, too: [State.Deadline] says
// when the next [Tick] is due. So every schedule can be tested as a script, without a process and without a clock.
package schedule
