// Package entry is the first step of a start in a sandbox, on Linux.
//
// A rule of Landlock for what a process has below /proc names an inode that doesn't exist before the process does, so nobody but the
// process itself can make it in time. A program that needs such a rule is therefore started in two steps: the process begins as this
// program again, in which the init of this package makes the rule, enters Landlock and executes the program. The process keeps its id,
// and so the inode.
//
// The package imports only what package os imports anyway, so that it is initialized before almost all else: of the packages that are
// ready, Go takes the first by its path. A first step takes some milliseconds, rather than the time that lmcaddy needs to start.
package entry
