//go:build !linux

package sandbox

import "fmt"

// Box is a prepared sandbox. This system has none.
type Box struct{}

// State returns an error that wraps ErrUnavailable.
func State() (string, error) {
	return "", fmt.Errorf("%w: only Linux has it yet", ErrUnavailable)
}

// Prepare returns an error that wraps ErrUnavailable.
func Prepare(Rules) (*Box, error) {
	_, err := State()
	return nil, err
}

// Enter returns ErrUnavailable.
func (b *Box) Enter() error { return ErrUnavailable }

// Close does nothing.
func (b *Box) Close() {}
