package object

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format says how objects are stored and compared. Parse is called with the
// guard locked, and may compare with the present objects.
type Format[T any] struct {
	Format func(T) ([]byte, error)
	Parse  func(name string, value []byte) (T, error)
	Equal  func(a, b T) bool // nothing is stored then; nil: what is not the same is not equal
}

// Messages is the format of objects that are stored as a message, in JSON: read
// converts a message to an object, said an object to its message.
func Messages[T any, M proto.Message](read func(M) (T, error), said func(T) M) Format[T] {
	return Format[T]{
		Format: func(o T) ([]byte, error) { return protojson.Marshal(said(o)) },
		Parse: func(_ string, value []byte) (o T, err error) {
			var none M
			m := none.ProtoReflect().New().Interface().(M)
			if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, m); err != nil {
				return o, err
			}
			return read(m)
		},
		Equal: func(a, b T) bool { return proto.Equal(said(a), said(b)) },
	}
}
