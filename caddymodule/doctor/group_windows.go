package doctor

// groupOf isn't known on this system.
func groupOf(string) string { return "" }
