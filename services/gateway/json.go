package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/internal/northbound"
)

// maxBody is the largest request, in octets.
const maxBody = 4 << 20

// written is the JSON form of messages: names as in the .proto files, and all
// fields.
func written() protojson.MarshalOptions {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}
}

// jsonCodec reads and writes messages as JSON; it rejects unknown fields.
type jsonCodec struct{ runtime.JSONPb }

func newJSONCodec() *jsonCodec {
	return &jsonCodec{runtime.JSONPb{MarshalOptions: written()}}
}

// Unmarshal reads exactly one message.
func (c *jsonCodec) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return c.JSONPb.Unmarshal(data, v)
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return explain(err, m)
	}
	return nil
}

// NewDecoder returns a decoder that reads the whole of r as one message.
func (c *jsonCodec) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(data)) == 0 {
			return io.EOF
		}
		octets, err := sizeOfJSON(data)
		if b, ok := r.(*body); ok && err == nil {
			if err = room(b.hold(octets)); err != nil {
				b.err = err
			}
		}
		if err != nil {
			return err
		}
		return c.Unmarshal(data, v)
	})
}

// explain rewords an error of the JSON library: where it is, what is wrong, and
// for an unknown name the known ones.
func explain(err error, m proto.Message) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	text = strings.TrimPrefix(text, "proto: ")
	text = strings.TrimPrefix(text, "syntax error ")
	if place, rest, ok := strings.Cut(text, "): "); ok && strings.HasPrefix(place, "(line ") {
		text = strings.TrimPrefix(place, "(") + ": " + rest
	}
	if strings.Contains(text, "unknown field") {
		text += "; " + fieldsOf(m.ProtoReflect().Descriptor())
	}
	return fmt.Errorf("JSON of the request: %s", text)
}

// fieldsOf names the fields of a message, and of the messages directly in it.
func fieldsOf(d protoreflect.MessageDescriptor) string {
	text := d.Name() + " has " + names(d)
	for i := range d.Fields().Len() {
		if inner := d.Fields().Get(i).Message(); inner != nil && !inner.IsMapEntry() {
			text += "; " + inner.Name() + " has " + names(inner)
		}
	}
	return string(text)
}

func names(d protoreflect.MessageDescriptor) protoreflect.Name {
	if d.Fields().Len() == 0 {
		return "no fields"
	}
	var list []string
	for i := range d.Fields().Len() {
		list = append(list, string(d.Fields().Get(i).Name()))
	}
	return protoreflect.Name(strings.Join(list, ", "))
}

// queryKey is the context's key for the query of the call's HTTP request.
type queryKey struct{}

// checkQuery returns an error for a query parameter that is no field of the
// request.
func checkQuery(ctx context.Context, req proto.Message) error {
	query, _ := ctx.Value(queryKey{}).(url.Values)
	d := req.ProtoReflect().Descriptor()
	for key := range query {
		name, _, _ := strings.Cut(key, ".")
		if d.Fields().ByTextName(name) == nil && d.Fields().ByJSONName(name) == nil {
			return status.Errorf(codes.InvalidArgument, "unknown parameter %q; %s", key, fieldsOf(d))
		}
	}
	return nil
}

// failure is the JSON of an error.
type failure struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"message"`
}

// httpError writes an error of a call as JSON, with the corresponding HTTP
// status.
func httpError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errWritten) {
		return
	}
	b := bodyOf(r.Context())
	if b != nil && b.err != nil {
		err = b.err
	}
	refuseErr(w, r, err)
}

// refuseErr answers a request with the status and text of an error.
func refuseErr(w http.ResponseWriter, r *http.Request, err error) {
	s := status.Convert(err)
	if errors.Is(err, errTooLarge) && !isGRPC(r) {
		writeError(w, http.StatusRequestEntityTooLarge, s.Code(), s.Message())
		return
	}
	refuse(w, r, s.Code(), s.Message())
}

// refuse answers a request with an error, as its protocol demands.
func refuse(w http.ResponseWriter, r *http.Request, kind codes.Code, text string) {
	text = northbound.Shortened(text)
	if isGRPC(r) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", fmt.Sprint(int(kind)))
		w.Header().Set("Grpc-Message", url.PathEscape(text))
		w.WriteHeader(http.StatusOK)
		return
	}
	writeError(w, runtime.HTTPStatusFromCode(kind), kind, text)
}

func writeError(w http.ResponseWriter, status int, kind codes.Code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body, _ := json.Marshal(failure{int(kind), text}) // of two plain fields: cannot fail
	w.Write(append(body, '\n'))
}
