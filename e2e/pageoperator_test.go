package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// TestPage_Operator clicks everything in the views with which a server is run, and checks by the API what came of it.
func TestPage_Operator(t *testing.T) {
	t.Parallel()
	models := newHub(t, 0)
	c := models.config()
	c.LM = append(c.LM, "preset short {", "\tmax_tokens 20", "}", "inspect 3", "allow plugin_mcp", "warm {", "\tsave_after 100ms", "\tmin_tokens 256", "}")
	home := harness.NewHome(t)
	home.AddRandom("acme/random", randommodel.Dense, 1)
	home.WriteMCP(harness.Fields{
		"everything": everything(home),
		"missing":    harness.Fields{"command": filepath.Join(home.Dir, "not-there")},
	})
	s := harness.Start(home, c)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *harness.Server, *hub)
	}{
		{"models", pageModels},
		{"load", pageLoad},
		{"memory", pageMemory},
		{"delete", pageDelete},
		{"downloads", pageDownloads},
		{"a download that fails", pageDownloadFails},
		{"warm states", pageWarm},
		{"settings", pageSettings},
		{"MCP servers", pageMCP},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, s.In(t), models) }) {
			return
		}
	}
}

// pageModels searches, filters and sorts, and reads the details of a model.
func pageModels(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/models"})
	tab.WaitText("2 models")
	tab.Has("row", "acme/random")
	tab.Fill("Search", "tiny f16")
	tab.WaitNoText("acme/random")
	tab.Fill("Search", "nothing like this")
	tab.WaitText("No model matches")
	tab.Fill("Search", "")
	tab.Choose("Type", "Embedding models")
	tab.WaitText("No model matches")
	tab.Choose("Type", "All types")
	tab.Click("checkbox", "Only loaded")
	tab.WaitText("No model matches")
	tab.Click("checkbox", "Only loaded")
	first := `document.querySelector("main tbody tr a").textContent`
	tab.Wait("sorted by name", first+` === "acme/random"`)
	tab.Click("button", "Model")
	tab.Wait("sorted by name, backwards", first+` === "lmcaddy/tinychat"`)
	tab.Click("button", "Size")
	tab.Wait("the largest first", `[...document.querySelectorAll("main th")].find((th) => th.ariaSort === "descending")?.textContent.startsWith("Size")`)

	tab.Click("link", harness.Model)
	tab.Has("heading", harness.Model)
	details := s.Get("/api/v1/models/"+harness.Model).Want(t, http.StatusOK)
	for _, path := range []string{"architecture", "quantization.name", "author", "engine", "files.0.path", "description"} {
		tab.WaitText(details.Get(path).Str)
	}
	tab.WaitText("Unloaded after 1 h without requests")
	tab.Click("button", "Chat template")
	tab.Has("button", "Copy chat template")
	tab.CheckAccess("details")
	tab.Go("#/models/acme%2Frandom")
	tab.Click("link", "Chat")
	tab.Wait("the chat is with this model", `document.querySelector(".model-picker")?.value === "acme/random"`)
}

// pageLoad loads models with the settings of the dialog, whose estimate follows what is typed.
func pageLoad(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/models"})
	tab.ClickIn(harness.Model, "Load")
	tab.Has("heading", "Load "+harness.Model)
	amount := `document.querySelector("dialog .estimate strong").textContent`
	tab.Wait("there is an estimate", `document.querySelector("dialog .estimate")`)
	var before string
	tab.Eval(amount, &before)
	tab.Fill("Context length", "x")
	tab.WaitText("Enter a whole number of at least 1.")
	tab.Fill("Context length", "99999999999999999999")
	tab.WaitText("Enter at most 2,147,483,647.")
	tab.Fill("Context length", "512")
	tab.Fill("Requests at a time", "2")
	tab.Wait("the estimate follows", `document.querySelector("dialog").innerText.includes("512 tokens, 2 at a time")`)
	var after string
	if tab.Eval(amount, &after); after == before || !strings.Contains(after, "MiB") {
		t.Errorf("it was %s, and is %s", before, after)
	}
	tab.CheckAccess("the dialog of a load")
	tab.Screenshot("load")
	tab.Fill("Identifier", "acme/random")
	tab.Click("button", "Load")
	tab.Wait("the field says why not", `document.querySelector("dialog [aria-invalid]")?.value === "acme/random"`)
	tab.Fill("Identifier", "mine")
	tab.Fill("Unload after", "600")
	tab.Fill("Batch size", "64")
	tab.Choose("Flash attention", "Off")
	tab.Choose("KV cache on the GPU", "Off")
	tab.Click("checkbox", "Pin")
	tab.Click("button", "Load")
	tab.WaitText("mine is loaded")
	ps := s.Get("/api/v1/ps").Want(t, http.StatusOK)
	in := ps.Get(`instances.#(id=="mine")`)
	if in.Get("context_length").Int() != 512 || in.Get("slots").Int() != 2 || in.Get("ttl_seconds").Int() != 600 || !in.Get("pinned").Bool() {
		t.Errorf("%s", in.Raw)
	}
	config := s.Get("/api/v1/models").Want(t, http.StatusOK).Get(`models.#(key=="lmcaddy/tinychat").loaded_instances.0.config`)
	if config.Get("eval_batch_size").Int() != 64 || config.Get("flash_attention").Bool() || config.Get("offload_kv_cache_to_gpu").Bool() {
		t.Errorf("%s", config.Raw)
	}

	tab.Click("link", harness.Model)
	tab.ClickIn("mine", "Unpin")
	tab.WaitText("mine may be unloaded for other models again")
	if s.Get("/api/v1/ps").Get(`instances.#(id=="mine").pinned`).Bool() {
		t.Error("it is still pinned")
	}
	tab.ClickIn("mine", "Unload")
	tab.WaitText("mine is unloaded")
	tab.WaitText("It isn't loaded")
	s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model}).Want(t, http.StatusOK)
	tab.Go("#/models")
	tab.Has("heading", "Devices")
	tab.ClickIn(harness.Model, "Unload")
	tab.WaitText(harness.Model + " is unloaded")
	if ids := s.IDs(); len(ids) > 0 {
		t.Errorf("%v", ids)
	}
}

// pageMemory sees what others load and unload, as it happens.
func pageMemory(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/memory"})
	tab.WaitText("No model is loaded")
	tab.WaitText("Live")
	s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model, "context_length": 512}).Want(t, http.StatusOK)
	tab.Has("row", harness.Model)
	ps := s.Get("/api/v1/ps").Want(t, http.StatusOK)
	for _, device := range ps.Get("devices").Array() {
		tab.WaitText(device.Get("name").Str)
	}
	if n := len(ps.Get("devices").Array()); n == 0 {
		t.Error("there is no device")
	}
	tab.Wait("its memory is shown", `document.querySelectorAll(".bar .part").length >= 2`)
	tab.CheckAccess("memory")
	tab.ClickIn(harness.Model, "Pin")
	tab.WaitText("stays loaded")
	if !s.Get("/api/v1/ps").Get("instances.0.pinned").Bool() {
		t.Error("it isn't pinned")
	}
	s.Post("/api/v1/models/unload", harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
	tab.WaitText("No model is loaded")
}

// pageDelete deletes a model, after its name was typed.
func pageDelete(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/models/acme%2Frandom"})
	tab.Click("button", "Delete…")
	tab.Has("heading", "Delete the model")
	tab.Press("Escape")
	tab.Wait("the dialog is closed", `!document.querySelector("dialog[open]")`)
	tab.Click("button", "Delete…")
	tab.Has("heading", "Delete the model")
	tab.Wait("it can't be deleted yet", `[...document.querySelectorAll("dialog button")].find((b) => b.textContent === "Delete")?.ariaDisabled === "true"`)
	tab.Fill("Type acme/random to confirm", "acme/random")
	tab.Click("button", "Delete")
	tab.WaitText("acme/random is deleted")
	tab.Has("heading", "Models")
	tab.WaitText("1 model")
	s.Get("/api/v1/models/acme/random").Want(t, http.StatusNotFound)
}

// pageDownloads finds a model, chooses a quantization, and pauses, resumes and ends its download.
func pageDownloads(t *testing.T, s *harness.Server, h *hub) {
	h.tell("fault", hubFault{"path": "/cdn/", "bytes_per_second": 400_000})
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/downloads"})
	tab.Fill("Search or name", "tiny")
	tab.Click("button", "Search")
	tab.ClickIn(tinyRepo, "Download")
	tab.Has("heading", "Download ")
	tab.Wait("there is a quantization", `document.querySelector("dialog input[type=radio][value='Q8_0']")`)
	tab.WaitText("Fits")
	tab.WaitText("It becomes " + tiny)
	tab.CheckAccess("the dialog of a download")
	tab.Screenshot("download")
	tab.Click("button", "Download")
	tab.WaitText("is being downloaded")
	tab.Wait("there is progress", `document.querySelector("main progress")?.value > 0`)
	tab.ClickIn(tiny, "Pause")
	tab.WaitText("Paused")
	id := s.Get(downloadPath).Get("jobs.0.job_id").Str
	awaitJob(s, id, "it is paused", hasStatus("paused"))
	tab.CheckAccess("a download")
	tab.ClickIn(tiny, "Resume")
	awaitJob(s, id, "it goes on", hasStatus("downloading"))
	tab.ClickIn(tiny, "Cancel")
	tab.Click("button", "Cancel the download")
	tab.WaitText("Cancelled")
	if code := job(s, id).Get("error.code").Str; code != "cancelled" {
		t.Errorf("%s", code)
	}
	h.mend()

	tab.Fill("Search or name", tinyRepo)
	tab.Click("button", "Download this")
	tab.Wait("the dialog is open", `document.querySelector("dialog[open]")`)
	tab.Click("button", "Download")
	tab.WaitText("Completed")
	tab.Look("downloads")
	tab.Click("link", tiny)
	tab.Has("heading", tiny)
	s.Get("/api/v1/models/"+tiny).Want(t, http.StatusOK)
}

// pageDownloadFails shows why a download has failed, and tries it again.
func pageDownloadFails(t *testing.T, s *harness.Server, h *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/downloads"})
	tab.Fill("Search or name", "acme/nothing-here")
	tab.Click("button", "Download this")
	tab.Wait("the error is shown", `document.querySelector("dialog .note.error")?.innerText.length > 20`)
	tab.Click("button", "Cancel")
	if err := os.RemoveAll(filepath.Join(s.Dir, "models", "acme")); err != nil {
		t.Fatal(err)
	}
	h.tell("fault", hubFault{"path": "/cdn/", "damage": 1 << 20})
	tab.Fill("Search or name", tinyRepo)
	tab.Click("button", "Download this")
	tab.Wait("the dialog is open", `document.querySelector("dialog[open]")`)
	tab.Click("button", "Download")
	tab.Has("row", tiny)
	tab.Wait("it has failed", `[...document.querySelectorAll(".job")].some((j) => j.innerText.includes("Failed") && j.querySelector(".error-text"))`)
	h.mend()
	tab.ClickIn("Failed", "Try again")
	tab.Wait("it is there", `![...document.querySelectorAll(".job")].some((j) => j.innerText.includes("Failed"))`)
	harness.Eventually(t, harness.Patience, "it is downloaded", func() bool { return s.Get("/api/v1/models/"+tiny).Status == http.StatusOK })
}

// pageSettings shows what is in force, and how to change it: with a token of an administrator, all of it.
func pageSettings(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/settings"})
	tab.WaitText("Administrators see all options")
	tab.ClickIn("plugin_mcp", "How to change")
	tab.WaitText("allow plugin_mcp")
	tab.Click("button", "Close")
	admin := created(t, s.Home, "--name", "operator", "--scopes", "admin")
	tab.Click("button", "Enter a token")
	tab.Fill("Token", admin)
	tab.Press("Enter")
	tab.WaitText("operator")
	tab.WaitText(filepath.Join(s.Work, "Caddyfile"))
	tab.Has("row", "idle_ttl")
	tab.Fill("Search the options", "inspect")
	tab.WaitNoText("idle_ttl")
	tab.Has("row", "inspect")
	tab.ClickIn("inspect", "How to change")
	tab.WaitText("inspect 100")
	tab.WaitText("lmcaddy reload --config")
	tab.CheckAccess("how to change a setting")
	tab.Click("button", "Close")
	tab.Fill("Search the options", "")
	tab.Has("row", "idle_ttl")
	pageSuggestions(t, s, tab)
	tab.WaitText("Sites")
	tab.WaitText("short")
	tab.WaitText(`"max_tokens": 20`)
	tab.CheckAccess("settings of an administrator")
	tab.Screenshot("settings")
}

// pageSuggestions checks that each suggestion of how to change a setting is a valid Caddyfile.
func pageSuggestions(t *testing.T, s *harness.Server, tab *harness.Tab) {
	t.Helper()
	var texts []string
	tab.Eval(`(async () => {
		const until = async (found) => {
			for (;;) {
				const it = found();
				if (it) return it;
				await new Promise((done) => setTimeout(done, 5));
			}
		};
		const texts = [];
		for (const button of [...document.querySelectorAll("main button")].filter((b) => b.textContent === "How to change")) {
			button.click();
			texts.push((await until(() => document.querySelector("dialog pre"))).textContent);
			document.querySelector("dialog footer button").click();
			await until(() => !document.querySelector("dialog"));
		}
		return texts;
	})()`, &texts)
	if settings := s.As(created(t, s.Home, "--name", "lines", "--scopes", "admin")).Get("/api/v1/settings").Get("configuration.settings.#").Int(); len(texts) < int(settings) {
		t.Errorf("%d settings have %d suggestions", settings, len(texts))
	}
	for i, text := range texts {
		file := s.WriteFile(fmt.Sprintf("suggested-%d", i), text+"\nhttp://:1234 {\n\tlm_api\n}\n")
		if adapted := s.Command("adapt", "--adapter", "caddyfile", "--config", file); adapted.Status != 0 {
			t.Errorf("%s\n%s", text, adapted.Output)
		}
	}
}

// pageWarm lists the saved states of conversations, and deletes them.
func pageWarm(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/warm"})
	tab.WaitText("No states are saved")
	tab.Look("warm-empty", 390, 1440)
	save := func(text string) {
		s.Chat(harness.Ask(strings.Repeat(text, 120)))
		s.Post("/api/v1/models/unload", harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusOK)
		harness.Eventually(t, harness.Patience, "a state is saved", func() bool { return len(s.Get("/api/v1/warm").Get("states").Array()) > 0 })
	}
	save("My name is Ada. ")
	tab.Has("row", harness.Model)
	tab.Look("warm")
	tab.ClickIn(harness.Model, "Delete the states of")
	tab.Has("heading", "Delete the states of")
	tab.Click("button", "Delete")
	tab.WaitText("1 state of")
	tab.WaitText("No states are saved")
	if left := s.Get("/api/v1/warm").Get("states").Raw; left != "[]" {
		t.Errorf("%s", left)
	}
	save("My name is Grace. ")
	tab.Click("button", "Delete all…")
	tab.Click("button", "Cancel")
	tab.Click("button", "Delete all…")
	tab.Has("heading", "Delete all states")
	tab.Click("button", "Delete")
	tab.WaitText("No states are saved")
	if left := s.Get("/api/v1/warm").Get("states").Raw; left != "[]" {
		t.Errorf("%s", left)
	}
}

// pageMCP shows the servers of mcp.json, and the tools of one with their schemas.
func pageMCP(t *testing.T, s *harness.Server, _ *hub) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/mcp"})
	tab.WaitText("This needs a token with the scope mcp.plugin.")
	tab.Look("mcp-token", 390, 1440)
	tab.Eval(`[...document.querySelectorAll("main button")].find((b) => b.textContent === "Enter a token").click(), true`, nil)
	token := created(t, s.Home, "--name", "tools", "--scopes", "mcp.plugin,models.read")
	tab.Fill("Token", token)
	tab.Press("Enter")
	tab.Has("row", "everything")
	tab.Click("link", "everything")
	tab.Has("heading", "everything")
	servers := s.As(token).Get("/api/v1/mcp/everything").Want(t, http.StatusOK)
	tools := servers.Get("tools").Array()
	if len(tools) == 0 {
		t.Fatalf("%s", servers.Body)
	}
	for _, tool := range tools {
		tab.Has("heading", tool.Get("name").Str)
	}
	tab.ClickIn(tools[0].Get("name").Str, "Arguments")
	tab.Wait("its schema is shown", `document.querySelector("details[open] pre").innerText.includes('"type"')`)
	tab.Look("mcp-tools")
	tab.Click("link", "MCP servers")
	tab.Has("row", "Connected")
	tab.Click("link", "missing")
	tab.WaitText("Failed")
	tab.Wait("the reason is shown", `document.querySelector("main .note.error")?.innerText.length > 10`)
	tab.Click("link", "MCP servers")
	tab.WaitText("Failed")
	tab.Look("mcp")
}
