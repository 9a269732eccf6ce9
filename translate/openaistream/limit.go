package openaistream

const (
	// maxAnswer bounds the stream of an answer of which no limit of tokens was asked, and maxFrame an event in it, in bytes. An answer in one
	// piece, and a call of a tool, may be one event.
	maxAnswer = 1 << 30
	maxFrame  = 4 << 20
	// frameBase and frameToken are how large an event may be where a limit was asked: some bytes for any answer, and some for each token, which
	// may have twenty alternatives with their probabilities.
	frameBase  = 256 << 10
	frameToken = 4 << 10
	// framesOfAnswer is how many times as large the whole answer may be: each piece has an event with a frame of JSON around it.
	framesOfAnswer = 4
	// maxAfter is how many bytes may follow the end of an answer until its connection is given up.
	maxAfter = 16 << 10
	// sparePieces is how many pieces an answer may have beyond two for each token.
	sparePieces = 32
)

// Limit is told how many tokens were asked for. A server may ignore that.
func (d *Decoder) Limit(tokens int) { d.limit = max(0, tokens) }

// maxFrame returns the maximum size of an event, or of an answer in one piece, in bytes.
func (d *Decoder) maxFrame() int {
	if d.limit == 0 || d.limit > (maxFrame-frameBase)/frameToken {
		return maxFrame
	}
	return frameBase + d.limit*frameToken
}

// maxAnswer returns the maximum size of the stream, in bytes.
func (d *Decoder) maxAnswer() int {
	if d.limit == 0 || d.limit > maxAnswer/framesOfAnswer/frameToken {
		return maxAnswer
	}
	return framesOfAnswer * (frameBase + d.limit*frameToken)
}

// isTooLong reports whether the answer has surely more tokens than were asked for: a piece is mostly one token, and rarely less.
func (d *Decoder) isTooLong() bool { return d.limit > 0 && d.pieces > 2*d.limit+sparePieces }
