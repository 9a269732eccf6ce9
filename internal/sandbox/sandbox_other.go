//go:build !linux

package sandbox

import "fmt"

// Box is a sandbox that is ready to be entered. There is none on this system.
type Box struct{}

// State tells what the sandbox is made of; the error wraps ErrUnavailable.
func State() (string, error) {
	return "", fmt.Errorf("%w: only Linux has it yet", ErrUnavailable)
}

// Prepare makes a Box.
func Prepare(Rules) (*Box, error) {
	_, err := State()
	return nil, err
}

// Enter confines the calling thread, for good.
func (b *Box) Enter() error { return ErrUnavailable }

// Close frees what the Box holds. Whoever has entered it stays confined.
func (b *Box) Close() {}
