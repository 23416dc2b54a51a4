package gateway

import (
	"bytes"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/internal/northbound"
)

// The bounds of one request: messages, each of which takes some hundred octets of
// memory however short its text, and values. They are counted before anything is
// decoded.
const (
	maxMessages = 100_000
	maxValues   = 1_000_000
)

// Approximate octets of a decoded message and a decoded value.
const (
	messageOctets = 256
	valueOctets   = 32
)

var errElements = status.Errorf(codes.ResourceExhausted, "the request holds more than %d messages or %d values; send it in parts", maxMessages, maxValues)

// sizeOfJSON returns the approximate decoded size of a request in JSON, in
// octets, or an error if the request holds too much.
func sizeOfJSON(text []byte) (octets int, err error) {
	messages, values := bytes.Count(text, []byte{'{'}), bytes.Count(text, []byte{','})
	if messages > maxMessages || values > maxValues {
		return 0, errElements
	}
	return len(text) + messages*messageOctets + values*valueOctets, nil
}

// sizeOfWire does the same for a request in protobuf's encoding. It leaves
// malformed requests to the decoder.
func sizeOfWire(d protoreflect.MessageDescriptor, b []byte) (octets int, err error) {
	e := elements{messages: maxMessages, values: maxValues}
	if !e.count(d, b, 0) {
		return 0, errElements
	}
	return len(b) + (maxMessages-e.messages)*messageOctets + (maxValues-e.values)*valueOctets, nil
}

// elements is what a request may still hold.
type elements struct{ messages, values int }

// maxNesting bounds the nesting of messages, far above that of the API's.
const maxNesting = 100

func (e *elements) count(d protoreflect.MessageDescriptor, b []byte, depth int) bool {
	if depth > maxNesting {
		return false
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return true
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return true
		}
		value := b[:n]
		b = b[n:]
		if e.values--; e.values < 0 {
			return false
		}
		if kind != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(value)
		f := d.Fields().ByNumber(number)
		switch {
		case f == nil || f.Message() == nil:
			if f != nil && f.IsList() && f.Kind() != protoreflect.StringKind && f.Kind() != protoreflect.BytesKind {
				e.values -= len(inner) // packed: an octet each at least
			}
		default:
			if e.messages--; e.messages < 0 || !e.count(f.Message(), inner, depth+1) {
				return false
			}
		}
		if e.values < 0 {
			return false
		}
	}
	return true
}

// sizeOf returns the approximate size of a decoded message, in octets. In
// protobuf's encoding it may be a twentieth of that, and of its JSON.
func sizeOf(m proto.Message) int { return decoded(m.ProtoReflect()) }

func decoded(m protoreflect.Message) int {
	octets := messageOctets + len(m.GetUnknown())
	value := func(f protoreflect.FieldDescriptor, v protoreflect.Value) int {
		switch f.Kind() {
		case protoreflect.MessageKind, protoreflect.GroupKind:
			return decoded(v.Message())
		case protoreflect.StringKind:
			return valueOctets + len(v.String())
		case protoreflect.BytesKind:
			return valueOctets + len(v.Bytes())
		}
		return valueOctets
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				octets += value(f.MapKey(), k.Value()) + value(f.MapValue(), v)
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				octets += value(f, v.List().Get(i))
			}
		default:
			octets += value(f, v)
		}
		return true
	})
	return octets
}

// sized is a gRPC request to decode, with the context of its call.
type sized struct {
	ctx context.Context
	to  proto.Message
	err error // why it is not decoded
}

// countingCodec is the codec of gRPC, except that it refuses requests that hold
// too much.
type countingCodec struct{ encoding.CodecV2 }

func newCountingCodec() countingCodec { return countingCodec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal decodes a request (encoding.CodecV2).
func (c countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	s, ok := v.(*sized)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	octets, err := sizeOfWire(s.to.ProtoReflect().Descriptor(), buf.ReadOnlyData())
	if err == nil {
		err = room(northbound.Hold(s.ctx, octets))
	}
	if err != nil {
		s.err = err
		return nil // otherwise the server would answer before it knows the request's kind
	}
	return c.CodecV2.Unmarshal(data, s.to)
}
