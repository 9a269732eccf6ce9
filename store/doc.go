// Package store keeps what must outlive the process: conversations, tokens, and what was used. It is one SQLite file, or a PostgreSQL database
// that several machines may share; both have the same schema and answer the same.
//
// A request and its answer are a [Turn]. Turns form trees: each but the first of a conversation names its parent, and two
// that name the same one are branches. A tree is called a family.
//
// # What is safe when
//
// When [Store.Put] returns nil, the turn is on the disk: neither a crash of the program, nor of the machine, nor a power cut
// takes it away, as long as the disk keeps what it has confirmed. A turn is there as a whole or not at all. With SQLite that is
// write-ahead logging with synchronous=FULL, one fsync for each group of turns that wait at the same time; with PostgreSQL it is
// the server's own promise (Open warns if its fsync or synchronous_commit is off).
//
// # What is deleted
//
// Soon after [Store.Delete] and [Store.Prune], what they removed is gone from SQLite's files: it is overwritten, the write-ahead
// log is emptied, and the file shrinks. The text of a turn that others continue stays until the last of these is deleted. With
// PostgreSQL it is the server's autovacuum that does what it does.
//
// # Who writes
//
// All writing goes through writers, goroutines that a Store owns: one for SQLite, which takes whatever waits and commits it as
// one transaction, and several for PostgreSQL, which groups commits by itself. Reading has connections of its own and doesn't
// wait for them.
//
// # Locks
//
// With PostgreSQL, a transaction locks first the rows of families, then those of blobs in the order of their hashes, then a
// counter. Whoever changes a family holds the lock on its row, so that a turn can't be added below one that is being removed.
package store
