//go:build !linux && !windows

package runtimes

func nvidiaFromDriver() *nvidia { return nil }

func hasVulkan() bool { return false }

func hasGPU() bool { return false }
