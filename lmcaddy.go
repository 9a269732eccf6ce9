// Package lmcaddy turns any build of Caddy into a model server. Importing it, as xcaddy does, is enough:
//
//	xcaddy build --with github.com/lmcaddy/lmcaddy
//
// That Caddy is otherwise unchanged. It gains the modules of package caddymodule, such as the app lm and the directive
// lm_api, and one command, lm, with the commands of package caddymodule/command as subcommands.
//
// The program lmcaddy is built from cmd/lmcaddy instead.
package lmcaddy

import "github.com/lmcaddy/lmcaddy/caddymodule/command"

func init() { command.RegisterLM() }
