package servers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
)

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

// advance reads a piece of a line.
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

// dispatch gives an event to the reader.
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
