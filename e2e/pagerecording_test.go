package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hears is JavaScript that has the models take audio, as one with such a projector does, and notes what is asked.
const hears = `const ask = fetch; globalThis.fetch = async (url, options) => {
	const path = new URL(url, location).pathname;
	if (path === "/api/v1/chat") {
		globalThis.sent = JSON.parse(options.body);
		return new Response(["message.start", "message.delta", "message.end", "chat.end"].map((event) => "event: " + event +
			"\ndata: " + JSON.stringify({ content: "A tone.", result: { output: [{ type: "message", content: "A tone." }] } }) + "\n\n").join(""));
	}
	const response = await ask(url, options);
	if (path !== "/api/v1/models") return response;
	const all = await response.json();
	for (const model of all.models) if (model.capabilities) model.capabilities.audio = true;
	return Response.json(all);
}; location.hash = "#/status"; true`

// TestPageChat_Recordings: a model that takes audio gets recordings, which can be played before and after.
func TestPageChat_Recordings(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil)
	tab := openChat(t, s)
	upload := func(name, content string) {
		tab.Do(chromedp.SetUploadFiles(`.composer input[type=file]`, []string{s.WriteFile(name, content)}, chromedp.ByQuery))
	}
	tone := "RIFF\xc4\x09\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data\xa0\x09\x00\x00" + strings.Repeat("\x80\x90", 1232)
	upload("tone.wav", tone)
	tab.WaitText("can't hear recordings. Choose a model with audio.")
	tab.Eval(hears, nil)
	tab.Click("link", "Chat")
	tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
	upload("no.mp3", "this is none")
	tab.WaitText("no.mp3 isn't a WAV, MP3 or FLAC file")
	upload("tone.wav", tone)
	tab.Has("button", "Remove tone.wav")
	tab.Wait("it can be played", `document.querySelector(".composer audio")?.duration > 0.2`)
	tab.CheckAccess("a question with a recording")
	tab.Screenshot("recording")
	if got := tab.asked("What is it?", 1); got != "A tone." {
		t.Errorf("%q", got)
	}
	tab.Wait("it can be played", `document.querySelector(".question audio")?.duration > 0.2 && !document.querySelector(".composer audio")`)
	var sent string
	tab.Eval(`JSON.stringify(sent.input)`, &sent)
	if want := fmt.Sprintf(`[{"type":"message","content":"What is it?"},{"type":"audio","data_url":"data:audio/wav;base64,%s"}]`, base64.StdEncoding.EncodeToString([]byte(tone))); sent != want {
		t.Errorf("%s", sent)
	}
}
