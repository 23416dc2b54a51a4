package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// streamFrom is the size of a decoded answer, in octets, from which on its JSON is
// written piece by piece: as a whole it would take as much memory again.
const streamFrom = 256 << 10

// answerKey is the context's key for the writer of the answer to a call in JSON.
type answerKey struct{}

// errWritten is the error of a call in JSON whose answer is written already.
var errWritten = errors.New("the answer is written")

// streamed reports whether it has written the answer of a call in JSON, because it
// is large.
func streamed(ctx context.Context, m proto.Message) bool {
	w, ok := ctx.Value(answerKey{}).(http.ResponseWriter)
	if !ok || sizeOf(m) < streamFrom {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeJSON(w, m.ProtoReflect()) // the client is gone if it fails
	return true
}

// writeJSON writes the JSON of a message, the elements of its lists one by one.
func writeJSON(to io.Writer, m protoreflect.Message) error {
	rest := m.New() // all but the lists
	fields := m.Descriptor().Fields()
	lists := func(f protoreflect.FieldDescriptor) bool { return f.IsList() && f.Message() != nil }
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !lists(f) {
			rest.Set(f, v)
		}
		return true
	})
	text, err := written().Marshal(rest.Interface())
	if err != nil {
		return err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	between := byte('{')
	var element []byte
	for i := range fields.Len() {
		f := fields.Get(i)
		value, ok := values[f.TextName()]
		if !ok {
			continue // of a oneof that is another
		}
		w.WriteByte(between) // errors stay in w
		between = ','
		w.WriteString(strconv.Quote(f.TextName()) + ":")
		if !lists(f) {
			w.Write(value)
			continue
		}
		w.WriteByte('[')
		for i, list := 0, m.Get(f).List(); i < list.Len(); i++ {
			if i > 0 {
				w.WriteByte(',')
			}
			if element, err = written().MarshalAppend(element[:0], list.Get(i).Message().Interface()); err != nil {
				return err
			}
			if _, err := w.Write(element); err != nil {
				return err
			}
		}
		w.WriteByte(']')
	}
	if between == '{' {
		w.WriteByte('{')
	}
	w.WriteByte('}')
	return w.Flush()
}
