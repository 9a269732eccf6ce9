package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A conversation in a terminal, as a user has it.
func TestTerminal_Conversation(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	term := s.Terminal("chat", "--temperature", "0")
	term.Wait("Asking " + harness.Model + ": it is the only one.")
	term.Wait("/help for help")
	term.Wait("> ")
	term.Type("What is the capital of France?\r")
	term.Wait("Paris")
	term.Wait("> ")
	term.Type("/sav\t " + filepath.Join(s.Work, "chat.md") + "\r") // which Tab completes
	term.Wait("Saved to ")
	term.Type("/quti\r")
	term.Wait("/help lists what is")
	term.Type("/model tinychatt\r")
	term.Wait(`there is no model "tinychatt": did you mean lmcaddy/tinychat?`)
	term.Wait("> ") // before that, Ctrl-C would end what the command does
	term.Type("\x03")
	term.Wait("Ctrl-C again")
	term.Wait("> ")
	term.Type("\x04")
	term.Wait("To go on: lmcaddy chat --continue ")
	if status := term.End(); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
	saved, err := os.ReadFile(filepath.Join(s.Work, "chat.md"))
	if err != nil || !strings.Contains(string(saved), "## You\n\nWhat is the capital of France?\n") {
		t.Errorf("%v: %s", err, saved)
	}
	history, err := os.ReadFile(filepath.Join(s.Dir, "chat_history"))
	if err != nil || !strings.Contains(string(history), `"What is the capital of France?"`+"\n") {
		t.Errorf("%v: %s", err, history)
	}

	words := strings.Fields(term.Shown())
	again := s.Terminal("chat", "--no-history", "--continue", words[len(words)-1])
	again.Wait(`Going on with "What is the capital of France?", 1 turn so far.`)
	again.Wait("Paris")
	again.Wait("/help for help")
	again.Wait("> ")
	again.Type("/bye\r")
	again.Wait(words[len(words)-1])
	again.End()
	if after, err := os.ReadFile(filepath.Join(s.Dir, "chat_history")); err != nil || string(after) != string(history) {
		t.Errorf("--no-history: %v: %s", err, after)
	}
	if list := s.Command("conversations", "ls"); !strings.Contains(list.Output, "What is the capital of France?") || strings.Count(list.Output, "\n") != 2 {
		t.Errorf("%s", list.Output)
	}
}

// What is typed while a command works is the next question, with its Enter.
func TestTerminal_TypedWhileACommandWorks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	term := s.Terminal("chat", "--no-history")
	term.Wait("/help for help")
	term.Wait("> ")
	s.Pause()
	term.Type("/model tinychatt\r")
	harness.Eventually(t, harness.Patience, "the command works", func() bool { return strings.Contains(term.Raw(), "> /model tinychatt\r\n") })
	term.Type("/quti\r")
	s.Resume()
	term.Wait("did you mean lmcaddy/tinychat?")
	term.Wait("/help lists what is")
	term.Type("\x04")
	term.End()
}

// slowModel is a server whose answers end only when their client disconnects. It notes the requests.
type slowModel struct {
	mu    sync.Mutex
	asked []string // the bodies
	looks int      // how often it was asked for what it stored
}

func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.URL.Path {
	case "/api/v1/chat":
		body, _ := io.ReadAll(r.Body)
		m.asked = append(m.asked, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		n := len(m.asked)
		fmt.Fprintf(w, "data: {\"type\":\"chat.start\",\"response_id\":\"resp_%d\"}\n\n", n)
		if n != 2 {
			fmt.Fprintf(w, "data: {\"type\":\"message.delta\",\"content\":\"Answer %d and\"}\n\n", n)
		} else {
			fmt.Fprint(w, "data: {\"type\":\"prompt_processing.progress\",\"progress\":0.5}\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		m.mu.Unlock()
		<-r.Context().Done()
		m.mu.Lock()
	case "/api/v1/responses/resp_1", "/api/v1/responses/resp_3", "/api/v1/responses/resp_4":
		if m.looks++; m.looks%3 != 0 { // it takes a moment
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, "{}")
	default:
		fmt.Fprint(w, "{}")
	}
}

// Ctrl-C stops an answer. What was said is kept, and the next question goes on from there.
func TestTerminal_StopsAnAnswer(t *testing.T) {
	t.Parallel()
	model := new(slowModel)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	term := harness.NewHome(t).Terminal("chat", "p/a", "--host", server.URL, "--system", "Be brief.")
	term.Wait("/help for help")
	term.Wait("> ")
	for _, step := range []struct{ question, until, note string }{
		{"one", "Answer 1 and", "(stopped; what was said is kept)"},
		{"two", "reading the prompt 50%", "(stopped before the answer began; the question wasn't kept)"},
		{"\x1b[200~a pasted\ntext, 世界\x1b[201~\x1b\rand more", "Answer 3 and", "(stopped; what was said is kept)"},
	} {
		term.Type(step.question + "\r")
		term.Wait(step.until)
		term.Type("\x03")
		term.Wait(step.note)
		term.Wait("> ")
	}
	term.Type("/new\r")
	term.Wait("A new conversation.")
	term.Wait("> ")
	term.Type("four\r")
	term.Wait("Answer 4 and")
	term.Type("\x03")
	term.Wait("what was said is kept")
	term.Wait("> ")
	term.Type("\x04")
	term.Wait("--continue 4")
	term.End()
	model.mu.Lock()
	defer model.mu.Unlock()
	var got []map[string]any
	for _, body := range model.asked {
		var request map[string]any
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		got = append(got, map[string]any{"input": request["input"], "previous": request["previous_response_id"], "system": request["system_prompt"]})
	}
	want := []map[string]any{
		{"input": "one", "previous": nil, "system": "Be brief."},
		{"input": "two", "previous": "resp_1", "system": nil},
		{"input": "a pasted\ntext, 世界\nand more", "previous": "resp_1", "system": nil},
		{"input": "four", "previous": nil, "system": "Be brief."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if partial := gjson.Get(model.asked[0], "store_partial"); !partial.Bool() {
		t.Errorf("what was said isn't to be stored: %s", model.asked[0])
	}
}
