package harness

import (
	"fmt"
	"os"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// find is JavaScript that finds elements as people do: by what they are and what they are called. It looks only at what can be seen, in
// the open dialog if there is one.
const find = `((role, name) => {
	const selectors = {
		button: "button, [role=button], summary", link: "a[href]", heading: "h1, h2, h3", row: "tr, li", cell: "td, dd",
		field: "input:not([type=checkbox], [type=radio]), textarea, select", checkbox: "input[type=checkbox]", radio: "input[type=radio]",
		dialog: "dialog[open]", any: "*",
	};
	const dialogs = document.querySelectorAll("dialog[open]");
	const root = dialogs[dialogs.length - 1] ?? document;
	const clean = (text) => (text ?? "").replace(/\s+/g, " ").trim();
	const labelOf = (e) => {
		const by = e.getAttribute("aria-label");
		if (by) return clean(by);
		if (e.labels?.length) return clean(e.labels[0].textContent);
		return clean(e.textContent);
	};
	const isSeen = (e) => e.matches("input[type=radio]") || e.checkVisibility({ visibilityProperty: true });
	const all = [...root.querySelectorAll(selectors[role] ?? role)].filter(isSeen);
	return all.find((e) => labelOf(e) === name) ?? all.find((e) => labelOf(e).startsWith(name)) ??
		(role === "row" || role === "any" ? all.findLast((e) => clean(e.textContent).includes(name)) : undefined);
})`

// element is JavaScript for an element with a role and a name. Within, if it isn't empty, is the text of a row that it is in.
func element(role, name, within string) string {
	if within == "" {
		return fmt.Sprintf("%s(%s, %s)", find, js(role), js(name))
	}
	return fmt.Sprintf(`[...(document.querySelector("dialog[open]") ?? document).querySelectorAll("tr, li")]
		.filter((row) => row.innerText.includes(%s))
		.map((row) => [...row.querySelectorAll("button, a[href], input, select, summary")].find((e) =>
			e.checkVisibility() && (e.getAttribute("aria-label") ?? e.textContent).replace(/\s+/g, " ").trim().startsWith(%s)))
		.findLast((e) => e)`, js(within), js(name))
}

// Click clicks on what has a role (button, link, radio, checkbox, ...) and a name, as soon as it is there.
func (b *Tab) Click(role, name string) {
	b.T.Helper()
	b.click(role, name, "")
}

// ClickIn clicks on the button or link of a name in the row that has a text.
func (b *Tab) ClickIn(row, name string) {
	b.T.Helper()
	b.click("button", name, row)
}

func (b *Tab) click(role, name, row string) {
	b.T.Helper()
	e := element(role, name, row)
	what := strings.TrimSpace(fmt.Sprintf("there is a %s %q %s", role, name, row))
	b.Wait(what+", which can be used", e+` && `+e+`.getAttribute("aria-disabled") !== "true" && (document.querySelector("dialog[open]") || !document.querySelector(".loading"))`)
	var at struct {
		X, Y   float64
		Hidden string
	}
	missed := true
	for tries := 0; missed && tries < 5; tries++ { // a page that changes may move it away just then
		b.Eval(fmt.Sprintf(`(async (e) => {
			e.scrollIntoView({ block: "center", inline: "center" });
			await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
			const aim = window.aim = { at: e, missed: true };
			e.addEventListener("click", () => { aim.missed = false; }, { capture: true, once: true });
			const r = (e.matches("input[type=radio]") ? e.closest("label") ?? e : e).getBoundingClientRect();
			const x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
			const covered = top && top !== e && !e.contains(top) && !top.contains(e) && !top.closest("label")?.contains(e);
			return { X: x, Y: y, Hidden: covered ? top.outerHTML.slice(0, 200) : "" };
		})(%s)`, e), &at)
		if at.Hidden != "" {
			b.Screenshot("covered")
			b.T.Fatalf("%s, but it is covered by %s", what, at.Hidden)
		}
		b.Do(chromedp.MouseClickXY(at.X, at.Y))
		b.Eval("window.aim?.missed === true && window.aim.at.isConnected", &missed)
	}
}

// Fill replaces what is in a field.
func (b *Tab) Fill(label, text string) {
	b.T.Helper()
	e := element("field", label, "")
	b.Wait("there is a field "+label, e)
	b.Eval(fmt.Sprintf(`((e) => { // in one step: nothing takes the focus in between
		e.focus();
		e.select?.();
		document.execCommand("%s", false, %s);
		return true;
	})(%s)`, map[bool]string{true: "delete", false: "insertText"}[text == ""], js(text), e), nil)
}

// Value is what is in a field.
func (b *Tab) Value(label string) (value string) {
	b.T.Helper()
	e := element("field", label, "")
	b.Wait("there is a field "+label, e)
	b.Eval(e+`.value`, &value)
	return value
}

// Choose chooses an option of a list by its text or its value.
func (b *Tab) Choose(label, option string) {
	b.T.Helper()
	e := element("field", label, "")
	b.Wait("there is a list "+label+" with "+option, fmt.Sprintf(`[...(%s?.options ?? [])].some((o) => o.value === %[2]s || o.textContent.trim() === %[2]s)`, e, js(option)))
	b.Eval(fmt.Sprintf(`((e) => {
		e.value = [...e.options].find((o) => o.value === %[2]s || o.textContent.trim() === %[2]s).value;
		e.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})(%[1]s)`, e, js(option)), nil)
}

// keys are the codes of the keys that tests press.
var keys = map[string]int64{"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40, "ArrowRight": 39}

// Press presses a key, such as Enter.
func (b *Tab) Press(key string) {
	b.T.Helper()
	text := ""
	if key == "Enter" {
		text = "\r"
	}
	b.Do(
		input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithCode(key).WithWindowsVirtualKeyCode(keys[key]).WithText(text),
		input.DispatchKeyEvent(input.KeyUp).WithKey(key).WithCode(key).WithWindowsVirtualKeyCode(keys[key]),
	)
}

// WaitText waits until the page shows a text.
func (b *Tab) WaitText(text string) {
	b.T.Helper()
	b.Wait("it shows "+text, `document.body.innerText.replace(/\s+/g, " ").includes(`+js(text)+`)`)
}

// WaitNoText waits until the page doesn't show a text.
func (b *Tab) WaitNoText(text string) {
	b.T.Helper()
	b.Wait("it doesn't show "+text, `!document.body.innerText.replace(/\s+/g, " ").includes(`+js(text)+`)`)
}

// Has waits until there is something with a role and a name.
func (b *Tab) Has(role, name string) {
	b.T.Helper()
	b.Wait(fmt.Sprintf("there is a %s %q", role, name), element(role, name, ""))
}

// axePath is where tools/page.sh installs axe-core.
const axePath = "../.cache/page/node_modules/axe-core/axe.min.js"

// CheckAccess fails the test if axe-core finds something that is serious or critical in what the tab shows.
func (b *Tab) CheckAccess(where string) {
	b.T.Helper()
	b.runAxe(where, `{ resultTypes: ["violations"] }`)
	b.checkWidth(where)
}

// runAxe has axe-core check the tab with some options, in JavaScript.
func (b *Tab) runAxe(where, options string) {
	b.T.Helper()
	var isThere bool
	if b.Eval(`typeof axe === "object"`, &isThere); !isThere {
		axe, err := os.ReadFile(axePath)
		if err != nil {
			b.T.Fatalf("axe-core is missing: %v\nRun tools/page.sh in the repository's folder; `make test` does.", err)
		}
		b.Eval(string(axe)+";true", nil)
	}
	var found []string
	b.Eval(`axe.run(document, `+options+`).then(({ violations }) => violations
		.filter((v) => v.impact === "serious" || v.impact === "critical")
		.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`, &found)
	for _, finding := range found {
		b.T.Errorf("%s: %s", where, finding)
	}
}

// checkWidth fails the test if something is wider than the tab.
func (b *Tab) checkWidth(where string) {
	b.T.Helper()
	var overflow []string
	b.Eval(`document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")].filter((e) =>
		e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table, pre, .segments")).slice(0, 5).map((e) => e.outerHTML.slice(0, 160))`, &overflow)
	for _, wide := range overflow {
		b.T.Errorf("%s: wider than the tab: %s", where, wide)
	}
}
