package mux

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// Kind says what a frame is.
type Kind byte

// The kinds of frames. Requests go from the dialling side to the listening one,
// results the other way. 2 and 7 were events and their credit.
const (
	Call   Kind = 1 // a request, or its first part
	Data   Kind = 3 // a further part of a request or result
	Cancel Kind = 4 // the caller gives up a call
	Result Kind = 5 // a response, or its first part
	Failed Kind = 6 // a call has failed
	Ping   Kind = 8 // asks for a Pong
	Pong   Kind = 9
	Bye    Kind = 10 // the last frame of the dialling side
)

// more is set in the octet of the kind when further parts follow as Data.
const more = 0x80

// Frame is one frame. On the wire it is the kind (with the top bit set when
// More), and of the other fields those that the kind has, in their order
// here: numbers as unsigned varints, octets after their number.
type Frame struct {
	Kind    Kind
	More    bool          // Call, Result, Data
	ID      uint64        // all but Ping, Pong, Bye; given by the dialling side, never again
	Timeout time.Duration // Call: what the caller's deadline leaves, in microseconds; 0 for none
	Total   uint64        // Call, Result: octets of all parts
	Code    transport.Code
	Name    []byte // Call
	Body    []byte // Call, Result, Data; Failed: the text
}

func (k Kind) known() bool    { return k.hasID() && k != 0 && k != 2 || Ping <= k && k <= Bye }
func (k Kind) hasID() bool    { return k <= Failed }
func (k Kind) hasTotal() bool { return k == Call || k == Result }
func (k Kind) hasBody() bool  { return k.hasTotal() || k == Data || k == Failed }
func (k Kind) inParts() bool  { return k.hasTotal() || k == Data }

// headroom is no less than what a frame takes besides its name and body.
const headroom = 1 + 7*binary.MaxVarintLen64

// Append appends the frame's encoding to b.
func (f *Frame) Append(b []byte) []byte {
	k := byte(f.Kind)
	if f.More {
		k |= more
	}
	b = append(b, k)
	if f.Kind.hasID() {
		b = binary.AppendUvarint(b, f.ID)
	}
	if f.Kind == Call {
		b = binary.AppendUvarint(b, uint64(f.Timeout/time.Microsecond))
	}
	if f.Kind.hasTotal() {
		b = binary.AppendUvarint(b, f.Total)
	}
	if f.Kind == Failed {
		b = binary.AppendUvarint(b, uint64(f.Code))
	}
	if f.Kind == Call {
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = append(b, f.Name...)
	}
	if f.Kind.hasBody() {
		b = binary.AppendUvarint(b, uint64(len(f.Body)))
		b = append(b, f.Body...)
	}
	return b
}

// Decode sets f to the first frame in b and returns what follows it. Name and
// Body share memory with b. An error means that the peer breaks the protocol.
func (f *Frame) Decode(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("frame: no octets")
	}
	k := Kind(b[0] &^ more)
	*f = Frame{Kind: k, More: b[0]&more != 0}
	if !k.known() || f.More && !k.inParts() {
		return nil, fmt.Errorf("frame: unknown kind %#x", b[0])
	}
	d := decoder{b[1:], true}
	if k.hasID() {
		f.ID = d.number(1<<64 - 1)
	}
	if k == Call {
		f.Timeout = time.Duration(d.number(maxTimeout)) * time.Microsecond
	}
	if k.hasTotal() {
		f.Total = d.number(transport.MaxMessage)
	}
	if k == Failed {
		f.Code = transport.Code(d.number(1<<32 - 1))
	}
	if k == Call {
		f.Name = d.octets(transport.MaxName)
	}
	if k.hasBody() {
		f.Body = d.octets(maxPart)
	}
	switch {
	case !d.ok:
		return nil, fmt.Errorf("frame of kind %d: cut short, or a number out of range", k)
	case k.hasTotal() && (uint64(len(f.Body)) > f.Total || !f.More && uint64(len(f.Body)) != f.Total):
		return nil, fmt.Errorf("frame of kind %d: %d octets of a message of %d", k, len(f.Body), f.Total)
	case k == Call && len(f.Name) == 0:
		return nil, fmt.Errorf("frame of kind %d: no name", k)
	}
	return d.b, nil
}

// maxTimeout is the longest deadline carried, a year; later ones are cut.
const maxTimeout = uint64(365 * 24 * time.Hour / time.Microsecond)

type decoder struct {
	b  []byte
	ok bool
}

func (d *decoder) number(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit {
		d.b, d.ok = nil, false
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) octets(limit uint64) []byte {
	n := d.number(limit)
	if n > uint64(len(d.b)) {
		d.b, d.ok = nil, false
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}
