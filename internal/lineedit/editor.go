package lineedit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// Editor reads from the process's terminal. It isn't safe for concurrent use.
type Editor struct {
	input    *runeReader
	history  *History
	complete func(begun string) []string
	ahead    []tea.Msg // what was typed behind the last question, before its end
}

// New returns an editor with a history. complete returns what the word at the beginning of a question may be: the Tab key completes it.
func New(history *History, complete func(begun string) []string) *Editor {
	return &Editor{input: &runeReader{File: os.Stdin}, history: history, complete: complete}
}

// Read reads a question. The error is [io.EOF] for Ctrl-D, and [ErrInterrupted] for Ctrl-C; with the latter, it returns what had been
// typed.
func (e *Editor) Read(prompt string) (string, error) {
	q := e.begin(prompt)
	if restore, err := silence(int(os.Stdin.Fd())); err == nil { // from now on, Enter isn't taken for a line's end within a question
		q.restore = restore
		e.ahead = append(e.ahead, typedAhead(string(pending()))...)
	}
	ahead := e.ahead
	e.ahead = nil
	for _, msg := range ahead {
		q.Update(msg)
	}
	err := q.run()
	q.restore()
	text := q.pasted.restore(q.area.Value())
	if err == nil && !errors.Is(q.err, io.EOF) {
		fmt.Println(prompt + strings.ReplaceAll(q.area.Value(), "\n", "\n"+strings.Repeat(" ", len(prompt))))
	}
	switch {
	case errors.Is(err, tea.ErrInterrupted):
		return text, ErrInterrupted
	case err != nil:
		return "", err
	case q.err != nil:
		return text, q.err
	}
	_ = e.history.Add(text) // it is asked all the same
	return Join(text), nil
}

func (e *Editor) begin(prompt string) *question {
	return &question{
		Editor: e, area: newArea(prompt), at: len(e.history.questions), deadly: make(chan os.Signal, 1),
		err:     io.EOF, // unless it is sent, or interrupted
		restore: func() {},
	}
}

// run shows the question until it is over. Then what it has shown is erased.
func (q *question) run() error {
	if q.isOver {
		return nil
	}
	signal.Notify(q.deadly, syscall.SIGTERM, syscall.SIGHUP)
	_, err := tea.NewProgram(q, tea.WithoutSignalHandler(), tea.WithInput(q.input)).Run()
	if q.above > 0 {
		fmt.Printf("\x1b[%dA\x1b[J", q.above)
	}
	signal.Stop(q.deadly)
	close(q.deadly)
	if number, isSignal := q.signal.(syscall.Signal); isSignal {
		q.restore()
		os.Exit(128 + int(number)) // as a shell tells of who is ended by a signal
	}
	return err
}

// mostRows bounds what is shown of a question while it is typed.
const mostRows = 20

// newArea returns a text area that looks like a line of a shell.
func newArea(prompt string) textarea.Model {
	area := textarea.New()
	area.SetStyles(textarea.Styles{})
	area.SetVirtualCursor(false)
	area.ShowLineNumbers = false
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight, area.MaxWidth = true, 1, mostRows, 1<<20, 0
	area.SetHeight(1)
	area.KeyMap.Paste.SetEnabled(false) // the terminal's own has the texts
	area.SetPromptFunc(len(prompt), func(at textarea.PromptInfo) string {
		if at.LineNumber == 0 {
			return prompt
		}
		return ""
	})
	area.Focus()
	return area
}

// question is a question while it is typed, a [tea.Model].
type question struct {
	*Editor

	area    textarea.Model
	pasted  pastes
	hint    string // what Tab may complete
	above   int    // the lines that are shown above the last one
	at      int    // which earlier question is shown; their number: none is
	draft   string // what was typed before one was
	deadly  chan os.Signal
	signal  os.Signal // that ends the process; nil: none
	isOver  bool
	err     error  // nil once it is sent
	restore func() // makes the terminal as it was before
}

// Init waits for a signal that ends the process.
func (q *question) Init() tea.Cmd { return func() tea.Msg { return <-q.deadly } }

// View shows empty lines once the question is over: a renderer whose lines become fewer leaves those above its cursor.
func (q *question) View() tea.View {
	if q.isOver {
		return tea.NewView(strings.Repeat("\n", q.above))
	}
	text := q.area.View() + q.hint
	q.above = strings.Count(text, "\n")
	view := tea.NewView(text)
	view.Cursor = q.area.Cursor()
	return view
}

func (q *question) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if q.isOver {
		q.ahead = append(q.ahead, msg)
		return q, nil
	}
	q.hint = ""
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		q.area.SetWidth(msg.Width)
	case tea.PasteMsg:
		q.area.InsertString(q.pasted.shorten(newlines.Replace(msg.Content)))
		return q, nil
	case os.Signal:
		q.signal, q.isOver = msg, true
		return q, tea.Quit
	case tea.KeyPressMsg:
		if cmd, isOurs := q.press(msg.String()); isOurs {
			return q, cmd
		}
	}
	var cmd tea.Cmd
	q.area, cmd = q.area.Update(msg)
	return q, cmd
}

// newlines makes them of what terminals send for them in pasted texts.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// press handles a key that the text area doesn't.
func (q *question) press(key string) (_ tea.Cmd, isOurs bool) {
	line, text := q.area.LineInfo(), q.area.Value()
	switch key {
	case "enter":
		if isWhole(text) {
			return q.end(nil), true
		}
		q.area.InsertString("\n")
	case "alt+enter", "ctrl+j":
		q.area.InsertString("\n")
	case "ctrl+c":
		return q.end(ErrInterrupted), true
	case "ctrl+z":
		return tea.Suspend, true
	case "tab":
		q.completeWord(text)
	case "ctrl+r":
		q.find()
	case "ctrl+d":
		if text != "" {
			return nil, false
		}
		return q.end(io.EOF), true
	case "up", "ctrl+p":
		if q.area.Line()+line.RowOffset > 0 {
			return nil, false
		}
		q.recall(q.at - 1)
	case "down", "ctrl+n":
		if q.area.Line() < q.area.LineCount()-1 || line.RowOffset < line.Height-1 {
			return nil, false
		}
		q.recall(q.at + 1)
	default:
		return nil, false
	}
	return nil, true
}

// end ends the question. The program ends a moment later, so that what was typed at once with the last key isn't lost with it.
func (q *question) end(err error) tea.Cmd {
	q.err, q.isOver = err, true
	return tea.Tick(20*time.Millisecond, func(time.Time) tea.Msg { return tea.Quit() })
}

// recall shows an earlier question, or after the last one what was typed.
func (q *question) recall(n int) {
	earlier := q.history.questions
	if n < 0 || n > len(earlier) {
		return
	}
	if q.at == len(earlier) {
		q.draft = q.pasted.restore(q.area.Value())
	}
	q.at = n
	text := q.draft
	if n < len(earlier) {
		text = earlier[n]
	}
	q.area.SetValue(q.pasted.shorten(text))
}

// find shows the next earlier question that contains what was typed.
func (q *question) find() {
	typed := q.draft
	if q.at == len(q.history.questions) {
		typed = q.area.Value()
	}
	for n := q.at - 1; n >= 0; n-- {
		if strings.Contains(q.history.questions[n], typed) {
			q.recall(n)
			return
		}
	}
}

// completeWord completes the word with which the question begins, as far as that is clear, and shows what it may be.
func (q *question) completeWord(begun string) {
	if strings.ContainsAny(begun, " \n") {
		return
	}
	words := q.complete(begun)
	if len(words) == 0 {
		return
	}
	common := words[0]
	for _, word := range words[1:] {
		for !strings.HasPrefix(word, common) {
			common = common[:len(common)-1]
		}
	}
	q.area.SetValue(common)
	if len(words) > 1 {
		q.hint = "\n" + strings.Join(words, "  ")
	}
}

// runeReader is a terminal whose reads end with whole characters. Bubble Tea loses one whose bytes come with two reads.
type runeReader struct {
	*os.File

	rest []byte // the beginning of a character
}

// Read reads at least one whole character.
func (r *runeReader) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		begun := copy(p, r.rest)
		n, err = r.File.Read(p[begun:])
		n += begun
		whole := n
		for back := 1; back < utf8.UTFMax && back <= n; back++ {
			if utf8.RuneStart(p[n-back]) {
				if !utf8.FullRune(p[n-back : n]) {
					whole = n - back
				}
				break
			}
		}
		r.rest = append(r.rest[:0], p[whole:n]...)
		n = whole
	}
	return n, err
}
