//go:build !linux

package sandbox

import (
	"fmt"
	"os/exec"
)

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

// Start returns ErrUnavailable.
func (b *Box) Start(*exec.Cmd) error { return ErrUnavailable }

// Close does nothing.
func (b *Box) Close() {}
