package servers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
)

// The bounds on what a server sends.
const (
	maxMessage = 4 << 20 // the longest message. Images are the longest in practice; few are longer than a megabyte.
	// idleBudget is how many bytes a server may send between calls, and callBudget how many more for each. Most of it is skipped.
	idleBudget  = 64 << 20
	callBudget  = 128 << 20
	messageCost = 16 << 10 // what each message takes of the budget, however short: a message keeps a goroutine busy
	lineCost    = 256      // what each line of an event takes beside its bytes. Short lines take as much time as longer ones.
)

var (
	errTooLong = errors.New("a message is longer than 4 MiB")
	errFlood   = errors.New("it didn't stop sending")
)

type budget struct {
	mu    sync.Mutex
	left  int
	calls int
	// spent is called, without the lock and maybe more than once, when nothing is left.
	spent func()
}

func newBudget(spent func()) *budget { return &budget{left: idleBudget, spent: spent} }

// begin adds the budget of a call; done ends it.
func (b *budget) begin() (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	b.left += callBudget
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls--
		most := idleBudget + b.calls*callBudget
		if b.calls == 0 {
			b.left = idleBudget
		}
		b.left = min(b.left, most)
	}
}

func (b *budget) spend(n int) error {
	b.mu.Lock()
	b.left -= n
	spent := b.left < 0
	b.mu.Unlock()
	if spent {
		b.spent()
		return errFlood
	}
	return nil
}

type wholeBody struct {
	io.ReadCloser
	budget *budget
	note   *note
	read   int
}

func (w *wholeBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.read += n
	if w.read > maxMessage {
		w.note.fail(errTooLong)
		return 0, errTooLong
	}
	if err := w.budget.spend(n); err != nil {
		w.note.fail(err)
		return 0, err
	}
	return n, err
}

const readSize = 64 << 10

// lineReader reads messages of one line each. A line that is too long is skipped, and in its place comes an error as the answer
// to the request that the line answers, so that others who use the server don't notice.
type lineReader struct {
	in     *bufio.Reader
	budget *budget
	ended  func(error) // called once when nothing more comes

	out  []byte // what is to be read next
	line []byte // the line so far
	long *longMessage
	err  error
}

func newLineReader(in io.Reader, b *budget, ended func(error)) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, readSize), budget: b, ended: ended}
}

func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.out) == 0 && l.err == nil {
		l.advance()
	}
	if len(l.out) == 0 {
		return 0, l.err
	}
	n := copy(p, l.out)
	l.out = l.out[n:]
	return n, nil
}

func (l *lineReader) advance() {
	piece, err := l.in.ReadSlice('\n')
	if spent := l.budget.spend(len(piece)); spent != nil {
		err = spent
	}
	switch {
	case l.long != nil:
		l.long.add(piece)
	case len(l.line)+len(piece) > maxMessage:
		l.long = new(longMessage)
		l.long.add(l.line)
		l.long.add(piece)
		l.line = nil
	default:
		l.line = append(l.line, piece...)
	}
	switch {
	case err == nil:
		l.finish()
	case !errors.Is(err, bufio.ErrBufferFull):
		l.fail(err)
	}
}

// fail ends the reading. The library would log another error than the end, to where nobody wants it.
func (l *lineReader) fail(err error) {
	l.out, l.err = nil, io.EOF
	l.ended(err)
}

func (l *lineReader) finish() {
	l.out = l.line
	if l.long != nil {
		if l.out = l.long.answer(); l.out != nil {
			l.out = append(l.out, '\n')
		}
	}
	l.line, l.long = nil, nil
	if err := l.budget.spend(messageCost); err != nil {
		l.fail(err)
	}
}

const codeTooLong = -32098 // the code of the error that answers a request in place of a message that is too long

const endBytes = 256 // how much is kept of each end of a message that is too long

// longMessage is what is kept of a JSON-RPC message that is too long: its ends. Servers write the id of an answer first or last.
type longMessage struct{ head, tail []byte }

var (
	firstID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,\s*"(?:jsonrpc|result|error)"`)
	lastID  = regexp.MustCompile(`,\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

func (m *longMessage) add(p []byte) {
	m.head = append(m.head, p[:min(len(p), endBytes-len(m.head))]...)
	tail := append(m.tail, p[max(0, len(p)-endBytes):]...)
	m.tail = tail[max(0, len(tail)-endBytes):]
}

// answer returns an error that answers the request, or nil if the message doesn't say which request it answers.
func (m *longMessage) answer() []byte {
	id := firstID.FindSubmatch(m.head)
	if id == nil {
		id = lastID.FindSubmatch(m.tail)
	}
	if id == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id[1], codeTooLong, errTooLong)
}

const maxField = 4 << 10 // the longest line of an event that isn't data

// eventBody is a response's body that is a stream of events. It gives each event one line of data, since its reader joins lines in
// quadratic time: the line breaks in a JSON message are between its tokens, so spaces take their place.
type eventBody struct {
	source io.ReadCloser
	in     *bufio.Reader
	budget *budget
	note   *note
	// answers says that the stream is of many requests: an event that is too long is skipped, and answered as in lineReader.
	answers  bool
	endpoint func(data string) error // if set, it checks the URL of an event that is called so

	out       []byte
	fields    []byte // the lines of the event but its data
	data      []byte
	hasData   bool
	isData    bool // the line being read is data
	continues bool // the next piece is of the same line
	long      *longMessage
	err       error
}

func newEventBody(source io.ReadCloser, b *budget, n *note, answers bool) *eventBody {
	return &eventBody{source: source, in: bufio.NewReaderSize(source, readSize), budget: b, note: n, answers: answers}
}

func (e *eventBody) Close() error { return e.source.Close() }

func (e *eventBody) Read(p []byte) (int, error) {
	for len(e.out) == 0 && e.err == nil {
		e.advance()
	}
	if len(e.out) == 0 {
		return 0, e.err
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

func (e *eventBody) fail(err error) {
	e.note.fail(err)
	e.out, e.err = nil, err
}

func (e *eventBody) advance() {
	piece, err := e.in.ReadSlice('\n')
	whole := err == nil
	if spent := e.budget.spend(len(piece) + lineCost); spent != nil {
		e.fail(spent)
		return
	}
	if whole {
		piece = bytes.TrimRight(piece, "\r\n")
	}
	switch {
	case e.continues:
		if e.isData {
			e.add(piece)
		}
	case whole && len(piece) == 0:
		e.dispatch()
	default:
		e.begin(piece, whole)
	}
	e.continues = !whole
	if whole || errors.Is(err, bufio.ErrBufferFull) || e.err != nil {
		return
	}
	// What was complete before the end counts, even without the empty line.
	if errors.Is(err, io.EOF) && e.hasData {
		e.dispatch()
	}
	if e.err == nil {
		e.err = err
	}
}

func (e *eventBody) begin(piece []byte, whole bool) {
	rest, isData := bytes.CutPrefix(piece, []byte("data:"))
	e.isData = isData
	if isData {
		if e.hasData {
			e.add([]byte(" "))
		}
		e.hasData = true
		e.add(bytes.TrimPrefix(rest, []byte(" ")))
		return
	}
	if whole && len(piece)+len(e.fields) < maxField && (bytes.HasPrefix(piece, []byte("event:")) ||
		bytes.HasPrefix(piece, []byte("id:")) || bytes.HasPrefix(piece, []byte("retry:"))) {
		e.fields = append(append(e.fields, piece...), '\n')
	}
}

func (e *eventBody) add(piece []byte) {
	switch {
	case e.long != nil:
		e.long.add(piece)
	case len(e.data)+len(piece) <= maxMessage:
		e.data = append(e.data, piece...)
	case !e.answers:
		e.fail(errTooLong)
	default:
		e.long = new(longMessage)
		e.long.add(e.data)
		e.long.add(piece)
		e.data = nil
	}
}

func (e *eventBody) dispatch() {
	data := e.data
	if e.long != nil {
		data = e.long.answer()
	}
	out := e.fields
	if e.endpoint != nil && isEndpoint(e.fields) {
		if err := e.endpoint(string(data)); err != nil {
			e.fail(err)
			return
		}
	}
	if len(data) > 0 {
		out = append(append(append(out, "data: "...), data...), '\n')
	}
	if len(out) > 0 {
		e.out = append(out, '\n')
	}
	e.fields, e.data, e.hasData, e.long = nil, nil, false, nil
	if err := e.budget.spend(messageCost); err != nil {
		e.fail(err)
	}
}

var isEndpoint = regexp.MustCompile(`(?m)^event:[ \t]*endpoint[ \t\r]*$`).Match
