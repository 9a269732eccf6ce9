package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// TestPage_Remotes shows the servers that this one reaches, and where their models are.
func TestPage_Remotes(t *testing.T) {
	t.Parallel()
	far := harness.NewHome(t)
	far.AddRandom("far/away", randommodel.Dense, 1)
	attic := harness.Start(far, harness.Config{})
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"remote " + attic.Base + " {", "\tname attic", "}"}})
	harness.Eventually(t, harness.Patience, "the remote is known", func() bool {
		return s.Get("/api/v1/models/far/away").Status == http.StatusOK
	})

	tab := harness.OpenPage(t, s.Base, harness.View{Width: 360, Height: 740})
	tab.Has("heading", "Remotes")
	tab.Wait("it is connected", rowWith("Remotes", "attic", "Connected"))
	tab.CheckAccess("remotes")
	tab.Screenshot("remotes")

	tab.Show(harness.View{})
	tab.Go("#/models/far%2Faway")
	tab.Wait("its place is shown", rowWith("Places", "attic", "Not loaded", "attic/far/away"))
	tab.WaitNoText("This machine")
	tab.WaitNoText("Delete…") // it is deleted where it is
	tab.Click("button", "Load…")
	tab.WaitText("what a load takes there isn't known")
	tab.Click("button", "Load")
	tab.WaitText("attic/far/away is loaded")
	tab.Wait("the instance says where it is", rowWith("Instances", "Ready", "On attic"))
	tab.Wait("its place is loaded", rowWith("Places", "attic", "Loaded"))
	tab.CheckAccess("the model of a remote")
	if got := attic.IDs(); len(got) != 1 || got[0] != "far/away" {
		t.Errorf("%v", got)
	}
	tab.Go("#/models/" + strings.Replace(harness.Model, "/", "%2F", 1))
	tab.Wait("this machine is a place", rowWith("Places", "This machine", "Not loaded"))
	tab.Has("button", "Delete…")
	tab.Go("#/memory")
	tab.Wait("it takes no memory here", rowWith("Instances", "attic/far/away", "On attic", "–"))
	tab.Wait("no bar has it", `document.querySelector(".bar") && ![...document.querySelectorAll(".legend li")].some((li) => li.textContent.includes("far/away"))`)

	attic.Kill()
	tab.Go("#/status")
	tab.Wait("it is unreachable", rowWith("Remotes", "attic", "Unreachable"))
}

// rowWith is a condition in JavaScript: a row of a table has some texts.
func rowWith(table string, texts ...string) string {
	quoted := `"` + strings.Join(texts, `", "`) + `"`
	return `[...document.querySelectorAll("[aria-label='` + table + `'] tbody tr")].some((tr) => [` + quoted + `].every((text) => tr.textContent.includes(text)))`
}
