package e2e

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// pageViews are the views whose looks are checked, with what each shows when it is there.
var pageViews = map[string]string{
	"status":                    "Status",
	"models":                    "Models",
	"models/lmcaddy%2Ftinychat": harness.Model,
	"memory":                    "Memory",
	"settings":                  "Settings",
}

// TestPage_Looks opens each view in each size and colour, and has axe-core check it.
func TestPage_Looks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model}).Want(t, 200)
	tab := harness.OpenPage(t, s.Base, harness.View{})
	for view, title := range pageViews {
		tab.Go("#/" + view)
		tab.Has("heading", title)
		tab.Wait("it is loaded", `!document.querySelector(".loading")`)
		tab.Look(strings.ReplaceAll(view, "/lmcaddy%2F", "-"))
	}
}
