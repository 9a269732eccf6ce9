// Package store holds what must survive the process: conversations, tokens and usage. It uses a SQLite file, or a PostgreSQL
// database that several servers may share. Both have the same schema and behave the same.
//
// A request and its answer are a [Turn]. Turns form trees: each turn but the first of a conversation names its parent, and
// turns with the same parent are branches. A tree is called a family.
//
// # Durability
//
// When [Store.Put] returns nil, the turn is on disk. It survives crashes of the program and of the machine, and power
// failures, provided that the disk keeps what it has confirmed. A turn is stored as a whole or not at all. SQLite does this by
// write-ahead logging with synchronous=FULL, with one fsync for each group of waiting turns. For PostgreSQL it depends on the
// server's settings: Open warns if fsync or synchronous_commit is off.
//
// # Deletion
//
// Shortly after [Store.Delete] and [Store.Prune], deleted data is gone from SQLite's files: it is overwritten, the write-ahead
// log is truncated, and the file shrinks. The text of a turn that others continue remains until the last of these is deleted.
// With PostgreSQL, the server's autovacuum reclaims the space.
//
// # Turns in progress
//
// A turn whose answer takes long can be stored before it is complete, with the status [InProgress], and is replaced at its end by
// [Store.Finish]. The server that makes the answer calls [Store.Renew] from time to time. What a crashed server leaves becomes
// [Failed] by [Store.FailUnfinished], which any server of the store may call.
//
// # Writers
//
// All writes go through writers, which are goroutines of the Store. SQLite has one, which commits all waiting writes in one
// transaction. PostgreSQL has several, since it groups commits itself. Reads use connections of their own and don't wait for
// writes.
//
// # Locks
//
// A PostgreSQL transaction locks rows of unfinished first, then those of families, then those of blobs in the order of their hashes, then a counter. A
// change of a family requires the lock of its row, so no turn can be added below one that is being deleted.
package store
