package members

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
	EventsMethod  = "deploy.Events"
	PacketsMethod = "deploy.Packets"
	// ObserveMethod carries copies of packet-ins to the observers of a process.
	// Its request is that of PacketsMethod, with no stages ahead.
	ObserveMethod = "deploy.Observe"
	// askMethod carries a question to the same service of another instance
	// (weft.Ask): the service's name, then the question. It always uses gRPC,
	// whatever the plan says, so that it works without the bus.
	AskMethod = "deploy.Ask"
)

// The first byte of an answer is its kind.
const (
	AnswerOK      = 0 // the response follows
	AnswerError   = 1 // a code and the text of the service's error
	AnswerNotHere = 2 // the service is not, or no longer, in this process
)

// ErrNotHere says that a process answered answerNotHere.
var ErrNotHere = errors.New("the stage is not there")

var errMalformed = errors.New("malformed batch")

// OwnerOf returns the service of a method or subject.
func OwnerOf(name string) string {
	owner, _, _ := strings.Cut(name, ".")
	return owner
}

// AppendBytes appends octets after their number.
func AppendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// Cursor decodes what appendBytes and the like encoded.
type Cursor struct {
	B   []byte
	Err error
}

func (r *Cursor) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.B, r.Err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	out := r.B[:n]
	r.B = r.B[n:]
	return out
}

func (r *Cursor) Uint8() byte {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *Cursor) Uint16() uint16 {
	if b := r.Take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *Cursor) Uint32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *Cursor) Uint64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *Cursor) Bytes() []byte {
	n, size := binary.Uvarint(r.B)
	if size <= 0 {
		r.B, r.Err = nil, api.Errorf(codes.InvalidArgument, "%w", errMalformed)
		return nil
	}
	r.B = r.B[size:]
	return r.Take(n)
}

// Strings decodes a list of names.
func (r *Cursor) Strings() []string {
	n := int(r.Uint8())
	list := make([]string, 0, n)
	for range n {
		list = append(list, string(r.Bytes()))
	}
	return slices.Clip(list)
}
