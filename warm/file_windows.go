package warm

import "io/fs"

// changedAt is unknown: the time of modification must do.
func changedAt(string) int64 { return 0 }

// plainly is nothing: [openPlain] looks at the file before and after it opens it.
const plainly = 0

// isOurs is true: the folder's access control list decides who makes files in it.
func isOurs(fs.FileInfo) bool { return true }

// syncFolder does nothing: NTFS has a journal, and folders can't be flushed.
func syncFolder(string) error { return nil }
