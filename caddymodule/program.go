package caddymodule

import (
	"runtime/debug"
	"sync/atomic"
)

// Program is what a program of our own does beside what modules may do in any Caddy. All of it is about the whole process,
// so a Caddy build that merely has the modules does none of it.
type Program struct {
	// Version is the program's own. Default: that of our module.
	Version string

	// LogReady is called whenever a configuration has set up the default logger, just before the admin endpoint listens.
	LogReady func()

	// Serving is called when a configuration with sites has started, with their addresses as URLs.
	Serving func(addresses []string)

	// PlainHTTP1 has sites without TLS offer HTTP/1 alone. Caddy's default has them offer what takes TLS, too, and warns of
	// it at every start.
	PlainHTTP1 bool
}

// inForce is what SetProgram was given, or a program that does nothing.
var inForce atomic.Pointer[Program]

// SetProgram is to be called by the main package of a program of our own, before Caddy runs.
func SetProgram(p Program) { inForce.Store(&p) }

func program() Program {
	if p := inForce.Load(); p != nil {
		return *p
	}
	return Program{}
}

// module is the path of the module that this package belongs to.
const module = "github.com/lmcaddy/lmcaddy"

// moduleVersion is the version of our module in somebody else's build.
func moduleVersion() string {
	const unknown = "development"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, dep := range info.Deps {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		if dep.Version != "" && dep.Version != "(devel)" { // as that of a checkout is
			return dep.Version
		}
	}
	return unknown
}
