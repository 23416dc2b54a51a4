package gateway

import (
	"bytes"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The bounds of what one request may hold: messages, each of which takes some
// hundred octets of memory however short it is written, and values. They are
// counted before anything is decoded.
const (
	maxMessages = 100_000
	maxValues   = 1_000_000
)

var errElements = status.Errorf(codes.ResourceExhausted, "the request holds more than %d messages or %d values; send it in parts", maxMessages, maxValues)

// checkJSON reports a request in JSON that holds too much.
func checkJSON(text []byte) error {
	if bytes.Count(text, []byte{'{'}) > maxMessages || bytes.Count(text, []byte{','}) > maxValues {
		return errElements
	}
	return nil
}

// checkWire reports a request in protobuf's encoding that holds too much.
// What is malformed is left to the decoder.
func checkWire(d protoreflect.MessageDescriptor, b []byte) error {
	e := elements{messages: maxMessages, values: maxValues}
	if !e.count(d, b, 0) {
		return errElements
	}
	return nil
}

// elements is what a request may still hold.
type elements struct{ messages, values int }

// maxNesting is how deep messages may be in messages: those of the API are far
// below it.
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

// countingCodec is the codec of gRPC, but for requests that hold too much.
type countingCodec struct{ encoding.CodecV2 }

func newCountingCodec() countingCodec { return countingCodec{encoding.GetCodecV2(protocodec.Name)} }

// Unmarshal decodes a request (encoding.CodecV2).
func (c countingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(proto.Message); ok {
		buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buf.Free()
		if err := checkWire(m.ProtoReflect().Descriptor(), buf.ReadOnlyData()); err != nil {
			return err
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}
