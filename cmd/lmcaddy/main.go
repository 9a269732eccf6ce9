// A reload can't keep connections of Multipath TCP from the socket that it closes: see steer in caddymodule.
//go:debug multipathtcp=0

// Command lmcaddy turns a machine into a model server: Caddy with the modules of this project.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/lmcaddy/lmcaddy/caddymodule/command"
	_ "github.com/lmcaddy/lmcaddy/internal/early"
)

func main() {
	command.Prepare()
	caddycmd.Main()
}
