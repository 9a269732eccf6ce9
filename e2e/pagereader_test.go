package e2e

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPageChat_Markdown: what follows a list with a block of code is no code, and the tags that have no attributes are what they mean.
func TestPageChat_Markdown(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil, harness.Fields{"Answer": harness.Fields{"Pieces": []string{
		"- one\n", "- two\n\n``", "`js\nlet a", " = 1;\n```\n", "\nAfter H<su", "b>2</sub>O<br>and <kbd>Ctrl</kbd> <i onclick=x>no</i>",
	}}})
	tab := openChat(t, s)
	tab.asked("Hello", 1)
	var seen struct{ Kinds, Code, Last string }
	tab.Eval(`((md) => ({ Kinds: [...md.children].map((e) => e.tagName).join(" "), Code: md.querySelector("pre").textContent, Last: md.lastElementChild.innerHTML }))(document.querySelector(".md"))`, &seen)
	if seen.Kinds != "UL DIV P" || seen.Code != "let a = 1;" || seen.Last != "After H<sub>2</sub>O<br>and <kbd>Ctrl</kbd> &lt;i onclick=x&gt;no&lt;/i&gt;" {
		t.Errorf("%+v", seen)
	}
}
