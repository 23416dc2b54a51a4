package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/weft-sdn/weft/transport/mux"
)

// message is the content of a link's stream: bytes that need no further
// encoding.
type message struct {
	send mem.Buffer
	got  *mux.Buffer
}

// octets holds the content of a unary call, likewise.
type octets []byte

// codec passes messages and octets through and encodes everything else as
// protobuf.
type codec struct{ proto encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (codec) Name() string { return proto.Name }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *message:
		return mem.BufferSlice{m.send}, nil
	case *octets:
		return mem.BufferSlice{mem.SliceBuffer(*m)}, nil
	}
	return c.proto.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *message:
		n := data.Len()
		m.got = mux.NewBuffer(n)
		m.got.B = m.got.B[:n]
		data.CopyTo(m.got.B)
		return nil
	case *octets:
		*m = data.Materialize()
		return nil
	}
	return c.proto.Unmarshal(data, v)
}
