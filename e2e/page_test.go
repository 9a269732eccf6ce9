package e2e

import (
	"fmt"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The widths and colours that the page is looked at in.
var looks = []harness.View{
	{Width: 360, Height: 740},
	{Width: 360, Height: 740, Dark: true},
	{Width: 800, Height: 900},
	{Width: 800, Height: 900, Dark: true},
	{Width: 1600, Height: 1000},
	{Width: 1600, Height: 1000, Dark: true},
}

// pageViews are the views whose looks are checked, with what each shows when it is there.
var pageViews = map[string]string{
	"status":                    "Status",
	"models":                    "Models",
	"models/lmcaddy%2Ftinychat": harness.Model,
	"downloads":                 "Downloads",
	"memory":                    "Memory",
	"warm":                      "Warm states",
	"mcp":                       "MCP servers",
	"settings":                  "Settings",
}

// TestPage_Looks opens each view in each size and colour, and has axe-core check it.
func TestPage_Looks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model}).Want(t, 200)
	tab := harness.OpenPage(t, s.Base, looks[0])
	for view, title := range pageViews {
		tab.Go("#/" + view)
		tab.Has("heading", title)
		tab.Wait("it is loaded", `!document.querySelector(".loading")`)
		for _, look := range looks {
			tab.Show(look)
			name := fmt.Sprintf("%s-%d-dark=%v", view, look.Width, look.Dark)
			tab.CheckAccess(name)
			tab.Screenshot(name)
		}
	}
}
