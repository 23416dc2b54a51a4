package deploy

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"google.golang.org/grpc/codes"
)

// The requests between processes that are not calls of a service's methods.
const (
	// PingMethod asks a process whether it is alive.
	PingMethod    = "deploy.Ping"
	eventsMethod  = "deploy.Events"
	packetsMethod = "deploy.Packets"
	// askMethod carries a question to the same service of another instance
	// (weft.Ask): the service's name, then the question. It always uses gRPC,
	// whatever the plan says, so that it works without the bus.
	askMethod = "deploy.Ask"
)

// The first byte of an answer is its kind.
const (
	answerOK      = 0 // the response follows
	answerError   = 1 // a code and the text of the service's error
	answerNotHere = 2 // the service is not, or no longer, in this process
)

// errNotHere says that a process answered answerNotHere.
var errNotHere = errors.New("the stage is not there")

var errMalformed = errors.New("malformed batch")

// ownerOf returns the service of a method or subject.
func ownerOf(name string) string {
	owner, _, _ := strings.Cut(name, ".")
	return owner
}

// appendBytes appends octets after their number.
func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// cursor decodes what appendBytes and the like encoded.
type cursor struct {
	b   []byte
	err error
}

func (r *cursor) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *cursor) uint8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *cursor) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *cursor) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *cursor) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *cursor) bytes() []byte {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	r.b = r.b[size:]
	return r.take(n)
}

// strings decodes a list of names.
func (r *cursor) strings() []string {
	n := int(r.uint8())
	list := make([]string, 0, n)
	for range n {
		list = append(list, string(r.bytes()))
	}
	return slices.Clip(list)
}
