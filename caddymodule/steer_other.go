//go:build !linux

package caddymodule

// steer does nothing: macOS gives connections to the newest socket of an address, and on Windows configurations share one.
func steer() error { return nil }
