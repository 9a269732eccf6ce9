// Package lmcaddy makes a model server of any build of Caddy. Importing it, as xcaddy does, is all that it takes:
//
//	xcaddy build --with github.com/lmcaddy/lmcaddy
//
// That Caddy stays itself. It gains the modules of package caddymodule, such as the app lm and the directive lm_api, and one
// command, lm, which has all of the commands of package caddymodule/command below it.
//
// The program lmcaddy is built from cmd/lmcaddy instead.
package lmcaddy

import "github.com/lmcaddy/lmcaddy/caddymodule/command"

func init() { command.RegisterLM() }
