package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// listener is a server that answers every question with its number, and keeps them.
type listener struct {
	URL   string
	goOn  chan struct{} // for each question that begins with "slow"
	mu    sync.Mutex
	asked []string
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{goOn: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/chat" {
			fmt.Fprint(w, "{}")
			return
		}
		var request struct {
			Input string `json:"input"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &request)
		l.mu.Lock()
		l.asked = append(l.asked, request.Input)
		n := len(l.asked)
		l.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"message.delta\",\"content\":\"Heard %d.\"}\n\n", n)
		if strings.HasPrefix(request.Input, "slow") {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-l.goOn:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, "data: {\"type\":\"chat.end\",\"result\":{}}\n\n")
	}))
	t.Cleanup(server.Close)
	l.URL = server.URL
	return l
}

// heard returns the questions.
func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// pasted is a text as a terminal sends it that is pasted.
func pasted(text string) string { return "\x1b[200~" + text + "\x1b[201~" }

// What is typed or pasted into chat arrives as it is, whatever characters it has.
func TestTerminal_Typing(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	h := harness.NewHome(t)
	term := h.Terminal("chat", "p/a", "--host", l.URL)
	term.Wait("/help for help")
	term.Wait("> ")
	book, wide := strings.Repeat("A line of a long book, 世界 é.\n", 30000), strings.Repeat("世界é", 400)
	var want []string
	for n, tt := range []struct{ keys, want string }{
		{"café ß ñ", "café ß ñ"},
		{"e\u0301 👩\u200d👩\u200d👧 שלום", "e\u0301 👩\u200d👩\u200d👧 שלום"},
		{"世c\x1b[D界", "世界c"},
		{pasted("one\rtwo") + "\x1b\rthree", "one\ntwo\nthree"},
		{pasted(wide), wide},
		{"Summarize: " + pasted(book) + " and " + pasted("a\x1b[31mb"), "Summarize: " + book + " and ab"},
		{"\x1b[1;2Ra\x1b[24;1Rb", "ab"}, // Shift-F3, and an answer to a question of another program
		{strings.Repeat("ab世", 500), strings.Repeat("ab世", 500)},
	} {
		term.Type(tt.keys + "\r")
		term.Wait(fmt.Sprintf("Heard %d.", n+1))
		term.Wait("> ")
		want = append(want, tt.want)
	}
	if diff := cmp.Diff(want, l.heard()); diff != "" {
		t.Errorf("%.2000s", diff)
	}
	if strings.Contains(term.Shown(), "A line of a long book") || !strings.Contains(term.Shown(), "[paste 1: 1.0 MB in 30000 lines]") {
		t.Error("a long text that is pasted isn't shown by its size")
	}
	term.Type("\x04")
	if status := term.End(); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
	if history, err := os.Stat(filepath.Join(h.Dir, "chat_history")); err != nil || history.Size() > 16<<10 {
		t.Errorf("the history has the book: %v, %v", history, err)
	}
}

// What is typed and pasted while an answer arrives is one message, which is shown. Ctrl-C drops it, and stops the answer.
func TestTerminal_TypingAhead(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	term := harness.NewHome(t).Terminal("chat", "p/a", "--host", l.URL)
	term.Wait("/help for help")
	term.Wait("> ")
	term.Type("slow one\r")
	term.Wait("Heard 1.")
	term.Type(pasted(strings.Repeat("a\r", 400)) + "b\rc\r")
	l.goOn <- struct{}{}
	term.Wait("[paste 1: ")
	term.Wait("Heard 2.")
	term.Wait("> ")
	term.Type("slow two\r")
	term.Wait("Heard 3.")
	term.Type("waits for Enter")
	l.goOn <- struct{}{}
	term.Wait("waits for Enter")
	term.Type("\r")
	term.Wait("Heard 4.")
	term.Wait("> ")
	term.Type("slow three\r")
	term.Wait("Heard 5.")
	term.Type("dropped\rdropped\r\x03")
	term.Wait("(stopped")
	term.Wait("> ")
	term.Type("last\r")
	term.Wait("Heard 6.")
	term.Wait("> ")
	term.Type("\x04")
	if status := term.End(); status != 0 {
		t.Errorf("it ends with status %d", status)
	}
	want := []string{"slow one", strings.Repeat("a\n", 400) + "b\nc", "slow two", "waits for Enter", "slow three", "last"}
	if diff := cmp.Diff(want, l.heard()); diff != "" {
		t.Errorf("%.2000s", diff)
	}
}

// Whatever ends a chat, the terminal is left as it was.
func TestTerminal_IsLeftAsItWas(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		keys   string
		status int
	}{
		{"SIGTERM", syscall.SIGTERM, "", 128 + int(syscall.SIGTERM)},
		{"SIGHUP", syscall.SIGHUP, "", 128 + int(syscall.SIGHUP)},
		{"Ctrl-D", 0, "\x04", 0},
		{"Ctrl-C twice", 0, "\x03\x03", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := harness.NewHome(t)
			program := h.Program()
			h.Binary = "/bin/sh"
			term := h.Terminal("-c", `stty -g >before; sh -c 'echo $$ >pid; exec "$@"' sh "$@"; echo "ended with $?"; stty -g >after`,
				"sh", program, "chat", "p/a", "--host", l.URL)
			term.Wait("/help for help")
			term.Wait("> ")
			if tt.keys != "" {
				term.Type(tt.keys)
			} else if err := syscall.Kill(int(number(t, filepath.Join(h.Work, "pid"))), tt.signal); err != nil {
				t.Fatal(err)
			}
			term.Wait("ended with " + strconv.Itoa(tt.status))
			term.End()
			before, err := os.ReadFile(filepath.Join(h.Work, "before"))
			if err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(filepath.Join(h.Work, "after"))
			if err != nil || string(after) != string(before) {
				t.Errorf("%v: the terminal is %s, and was %s", err, after, before)
			}
			if raw := term.Raw(); strings.LastIndex(raw, "\x1b[?2004l") < strings.LastIndex(raw, "\x1b[?2004h") {
				t.Error("pasted text is still marked")
			}
		})
	}
}

// number reads a number from a file.
func number(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ctrl-Z stops a chat, and it goes on in the foreground with what was typed.
func TestTerminal_StopsAndGoesOn(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	h := harness.NewHome(t)
	program := h.Program()
	h.Binary, h.Env = "/bin/bash", []string{"PS1=shell: ", "HISTFILE="}
	term := h.Terminal("--norc", "--noprofile", "-i")
	term.Wait("shell: ")
	term.Type(program + " chat p/a --host " + l.URL + "\r")
	term.Wait("/help for help")
	term.Wait("> ")
	term.Type("one \x1a")
	term.Wait("Stopped")
	term.Wait("shell: ")
	term.Type("fg\r")
	term.Wait("> ")
	term.Type("two\r")
	term.Wait("Heard 1.")
	term.Wait("> ")
	term.Type("\x04")
	term.Wait("shell: ")
	term.Type("exit\r")
	term.End()
	if diff := cmp.Diff([]string{"one two"}, l.heard()); diff != "" {
		t.Error(diff)
	}
}

// A terminal that can do nothing but show text gets no sequences that control one.
func TestTerminal_Dumb(t *testing.T) {
	t.Parallel()
	l := newListener(t)
	for _, kind := range []string{"dumb", ""} {
		h := harness.NewHome(t)
		h.Env = []string{"TERM=" + kind}
		term := h.Terminal("chat", "p/a", "--host", l.URL)
		term.Wait("/help for help")
		term.Wait("> ")
		term.Type("one\r")
		term.Wait("Heard ")
		term.Wait("> ")
		term.Type("two\x03")
		term.Wait("Ctrl-C again")
		term.Wait("> ")
		term.Type("\x04")
		if status := term.End(); status != 0 || strings.Contains(term.Raw(), "\x1b") {
			t.Errorf("status %d: %q", status, term.Raw())
		}
	}
	if diff := cmp.Diff([]string{"one", "one"}, l.heard()); diff != "" {
		t.Error(diff)
	}
}
