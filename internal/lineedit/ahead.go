package lineedit

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/cancelreader"
)

// mostAhead bounds what is kept of what is typed ahead, in bytes.
const mostAhead = 16 << 20

// Ahead keeps what is typed and pasted while an answer is shown. The function that it returns ends that. Then all of it is the next
// question, in as many lines as it has, unless it is dropped: it waits for Enter if that wasn't the last key. Ctrl-C interrupts the process
// as ever.
func (e *Editor) Ahead() (end func(isDropped bool)) {
	restore, err := silence(int(os.Stdin.Fd()))
	if err != nil { // what is typed waits in the terminal
		return func(bool) {}
	}
	reader, err := cancelreader.NewReader(os.Stdin)
	if err != nil {
		restore()
		return func(bool) {}
	}
	fmt.Print(ansi.SetModeBracketedPaste)
	typed, done, deadly := make(chan string, 1), make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(deadly, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(reader, mostAhead)) // it ends when it is cancelled
		typed <- string(text)
	}()
	leave := func() {
		fmt.Print(ansi.ResetModeBracketedPaste)
		restore()
	}
	go func() {
		select {
		case s := <-deadly:
			leave()
			os.Exit(128 + int(s.(syscall.Signal)))
		case <-done:
		}
	}()
	return func(isDropped bool) {
		reader.Cancel()
		text := []byte(<-typed)
		_ = reader.Close()
		text = append(text, pending()...)
		signal.Stop(deadly)
		close(done)
		leave()
		if !isDropped {
			e.ahead = append(e.ahead, typedAhead(string(text))...)
		}
	}
}

// pending reads what waits in the terminal.
func pending() (text []byte) {
	for more := make([]byte, 4096); isPending(int(os.Stdin.Fd())); {
		n, err := os.Stdin.Read(more)
		if text = append(text, more[:n]...); err != nil {
			break
		}
	}
	return text
}

// typedAhead returns what was typed ahead as one text that is pasted into a question, and the key that ended it.
func typedAhead(typed string) (all []tea.Msg) {
	var text []string
	var isPasted, isSent, isEnd bool
	for state := byte(0); typed != ""; {
		seq, _, n, next := ansi.DecodeSequence(typed, state, nil)
		typed, state = typed[n:], next
		wasSent := isSent
		isSent = false
		switch {
		case seq == "\x1b[200~" || seq == "\x1b[201~":
			isPasted = seq == "\x1b[200~"
			isSent = wasSent && !isPasted
		case seq == "\n" || seq == "\r":
			text, isSent = append(text, "\n"), !isPasted
		case seq == "\x7f" || seq == "\b":
			text = text[:max(0, len(text)-1)]
		case seq == "\x04":
			isEnd = len(text) == 0
		case seq == "\t" || !unicode.IsControl([]rune(seq)[0]):
			text = append(text, seq)
		}
	}
	if isEnd && len(text) == 0 {
		return []tea.Msg{tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}}
	}
	if whole := strings.Join(text, ""); strings.TrimSpace(whole) != "" {
		all = append(all, tea.PasteMsg{Content: strings.TrimRight(whole, "\n")})
		if isSent {
			all = append(all, tea.KeyPressMsg{Code: tea.KeyEnter})
		}
	}
	return all
}
