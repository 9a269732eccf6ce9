package supervisor

// wasKilled returns false: Windows doesn't kill processes that take too much memory.
func wasKilled(error) bool { return false }

// wasEndedByOthers returns false: the exit code doesn't tell.
func wasEndedByOthers(error) bool { return false }
