package servers

import (
	"bufio"
	"errors"
	"io"
)

// readSize is how much is read at a time.
const readSize = 64 << 10

// lineReader reads messages of one line each. A line that is too long is skipped, and in its place comes an error as the answer
// to the request that the line answers, so that others who use the server don't notice.
type lineReader struct {
	in     *bufio.Reader
	budget *budget
	// ended is called once when nothing more comes.
	ended func(error)

	out  []byte // what is to be read next
	line []byte // the line so far
	long *idScanner
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

// advance reads a piece of a line.
func (l *lineReader) advance() {
	piece, err := l.in.ReadSlice('\n')
	if spent := l.budget.spend(len(piece)); spent != nil {
		err = spent
	}
	switch {
	case l.long != nil:
		l.long.feed(piece)
	case len(l.line)+len(piece) > maxMessage:
		l.long = new(idScanner)
		l.long.feed(l.line)
		l.long.feed(piece)
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

// finish gives a line to the reader.
func (l *lineReader) finish() {
	l.out = l.line
	if l.long != nil {
		if l.out = l.long.answer(); l.out != nil {
			l.out = append(l.out, '\n')
		}
	}
	if !l.budget.admits(l.out) {
		l.out = nil
	}
	l.line, l.long = nil, nil
	if err := l.budget.spend(messageCost); err != nil {
		l.fail(err)
	}
}
