package supervisor

import (
	"bytes"
	"io"
	"net"
	"slices"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Payload is the body of a request to an engine. It may consist of several pieces, so that a large body needn't be copied to
// be edited.
type Payload struct {
	Pieces [][]byte         // sent one after the other
	Memory http1.RefCounted // the buffer that they are part of; nil: the garbage collector frees it

	// Demand is what the request demands, of which other nodes of a cluster are told; nil: nothing.
	Demand *schedule.Demand

	pin    *pin   // the slot that it is pinned to; nil: none
	moving func() // called as a large one is sent, by the transport; may be nil
}

// Body returns the payload as the body of a request.
func (p *Payload) Body() http1.Body {
	return http1.Body{Pieces: p.Pieces, Memory: p.Memory, Moving: p.moving}
}

// Size returns the number of bytes.
func (p Payload) Size() int64 {
	body := p.Body()
	return body.Size()
}

// copied is the size in bytes up to which a payload is copied into one piece. The transport sends a body that it knows to be
// in memory together with the headers.
const copied = 64 << 10

// Reader returns a reader of all pieces, for one request.
func (p Payload) Reader() io.ReadCloser {
	if p.Size() <= copied {
		return io.NopCloser(bytes.NewReader(bytes.Join(p.Pieces, nil)))
	}
	if p.Memory != nil {
		p.Memory.Retain()
	}
	return &payloadReader{rest: slices.Clone(p.Pieces), memory: p.Memory, moving: p.moving}
}

// payloadReader reads a payload once.
type payloadReader struct {
	rest   net.Buffers
	memory http1.RefCounted
	moving func()
}

func (r *payloadReader) Read(p []byte) (int, error) {
	if r.moving != nil {
		r.moving()
	}
	return r.rest.Read(p)
}

// Close releases the memory. The transport always closes the body when it has finished reading.
func (r *payloadReader) Close() error {
	if r.memory != nil {
		r.memory.Release()
		r.memory = nil
	}
	return nil
}

// Used records what the answer to a body that [Lease.Pinned] returned has told so far. The last call counts.
func (p Payload) Used(u schedule.Use) {
	if p.pin != nil {
		u.Slot = p.pin.Slot
		p.pin.tell(u)
	}
}
