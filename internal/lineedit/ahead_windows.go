package lineedit

import "errors"

// silence isn't possible: a console without echo doesn't do what is printed, either.
func silence(int) (restore func(), _ error) { return nil, errors.ErrUnsupported }

func isPending(int) bool { return false }
