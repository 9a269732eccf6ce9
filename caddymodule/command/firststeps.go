package command

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/node"
)

// listingPatience bounds how long a server that starts looks for models to tell their number. Disks may be slow.
const listingPatience = 30 * time.Second

// firstSteps returns what a server says after where it serves: which engine and how many models it has, and what to type next, each in
// a line.
func firstSteps(n *node.Node, listsAll bool) string {
	engines := []string{}
	for _, e := range n.Engines.Find() {
		if e.Executable != "" {
			engines = append(engines, strings.TrimSuffix(filepath.Base(e.Executable), ".exe")+" ("+e.Executable+")")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), listingPatience)
	defer cancel()
	models, err := n.Models(ctx)
	next := `Next, in another terminal: "lmcaddy chat" asks a model, "lmcaddy ls" lists them`
	listed := kit.Count(len(models), "model")
	switch {
	case err != nil:
		listed = "not known: " + err.Error()
	case len(models) == 0:
		listed, next = "none", `Next, in another terminal: "lmcaddy get qwen/qwen3-4b" gets a model, "lmcaddy search WORDS" finds others`
	case !listsAll:
		listed += "; GET /v1/models lists the loaded ones only (all: lmcaddy serve --list-models all, or list_models all in the Caddyfile)"
	}
	if len(engines) == 0 {
		engines, next = []string{"none"}, `Next, in another terminal: "lmcaddy runtime get llama.cpp" gets an engine`
	}
	return fmt.Sprintf("Engine: %s\nModels: %s\n%s\n", strings.Join(engines, ", "), listed, next)
}
