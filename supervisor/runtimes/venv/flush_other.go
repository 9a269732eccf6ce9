//go:build !unix

package venv

// flush does nothing: there are no environments here.
func flush() {}
