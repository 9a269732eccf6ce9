package supervisor

// wasKilled isn't told here: the system ends no process for the memory that it takes.
func wasKilled(error) bool { return false }
