package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// watched is JavaScript that notes when Enter is pressed, when the first text of the newest answer is there, and when all of it is, and counts frames.
// It reads nothing that needs a layout. The test waits for it instead of polling, which would slow the page down.
const watched = `globalThis.bench = { question: "", entered: 0, shown: 0, frames: 0, from: 0 };
addEventListener("keydown", (e) => { if (e.key === "Enter") bench.entered = performance.now(); }, true);
new MutationObserver(() => {
	const turn = document.querySelector(".turn:last-child");
	if (!turn?.querySelector(".question")?.textContent.includes(bench.question) || !turn.querySelector(".md")?.textContent) return;
	bench.shown ||= performance.now();
	if (turn.querySelector(".answer").ariaBusy === "false") bench.end?.();
}).observe(document.body, { subtree: true, childList: true, characterData: true, attributeFilter: ["aria-busy"] });
(function frame() { bench.frames++; requestAnimationFrame(frame); })();
true`

// firstToken is how many milliseconds native chat takes until the first token of an answer is there, which is asked for as the page does.
func firstToken(b *testing.B, s *harness.Server, previous string) float64 {
	b.Helper()
	before := time.Now()
	reply, err := http.Post(s.Base+harness.NativeChatPath, "application/json", strings.NewReader(fmt.Sprintf(`{"model": %q, "input": "hello", "stream": true, "background": true, "previous_response_id": %q}`, harness.Model, previous)))
	if err != nil {
		b.Fatal(err)
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "message.delta") {
			return float64(time.Since(before).Microseconds()) / 1000
		}
	}
	b.Fatal("there is no token")
	return 0
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkPage measures the chat in a conversation of 200 turns, with a fake engine, and prints, as `make bench` does: the time from Enter to the
// first token in the page and in the API alone, the frames a second while 500 tokens a second stream, and the time in which 1,000
// conversations are listed.
func BenchmarkPage(b *testing.B) {
	const rate = 500
	const paragraph = "Some words of an answer, such as it is.\n\n"
	short := harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": "Hello."}}}}
	long := harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": paragraph, "Chunks": 2 * rate}, "Delay": time.Second / rate}}}
	engine := harness.StartFake(b, short)
	s := harness.Start(harness.NewHome(b), harness.Config{Engine: engine.Lines()})
	path := importTurns(b, s, 200, paragraph)
	tab := chatTab{harness.OpenPage(b, s.Base, harness.View{Path: path})}
	tab.WaitText("Question 199")
	tab.Eval(watched, nil)
	turn := 200
	asked := func(question string) {
		turn++
		question = fmt.Sprintf("%s %d", question, turn)
		tab.Eval(fmt.Sprintf(`bench.complete = new Promise((end) => Object.assign(bench, { question: %q, shown: 0, frames: 0, from: performance.now(), end })), true`, question), nil)
		tab.ask(question)
		tab.Eval("bench.complete", nil)
	}
	asked("load the model")
	all := s.Get("/api/v1/conversations/" + strings.TrimPrefix(path, "#/chat/") + "?branches=true").Get("responses").Array()
	last := all[len(all)-1].Get("response_id").Str

	var page, api, frames, list []float64
	for b.Loop() {
		var ms float64
		asked("hello")
		tab.Eval(`bench.shown - bench.entered`, &ms)
		page = append(page, ms)
		api = append(api, firstToken(b, s, last))
		engine.Set(b, long)
		asked("stream")
		tab.Eval(`bench.frames / (performance.now() - bench.from) * 1000`, &ms)
		frames = append(frames, ms)
		var words int
		if tab.Eval(`document.querySelector(".turn:last-child .md").innerText.split(/\s+/).length`, &words); words < rate {
			b.Fatalf("only %d words were streamed", words)
		}
		engine.Set(b, short)
	}
	for i := range 1000 {
		s.Post("/api/v1/conversations", harness.Fields{"responses": []harness.Fields{{
			"response_id": "a", "model": harness.Model, "status": "completed", "input": []harness.Fields{{"type": "message", "content": fmt.Sprintf("Conversation %d", i)}},
			"output": []harness.Fields{{"type": "message", "content": "Yes."}},
		}}}).Want(b, 200)
	}
	for range 3 {
		before := time.Now()
		tab.Go(fmt.Sprintf("?%d#/conversations", len(list)))
		tab.WaitText("Conversation 999")
		list = append(list, float64(time.Since(before).Milliseconds()))
	}
	for name, all := range map[string][]float64{"ms-page-first-token": page, "ms-API-first-token": api, "frames/s": frames, "ms-1000-conversations": list} {
		b.ReportMetric(median(all), name)
	}
}
