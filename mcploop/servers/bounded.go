package servers

import (
	"bufio"
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

// budget is how much a server may still send.
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
