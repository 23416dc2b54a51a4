package apps

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
)

// written is how messages are written as JSON: names as in the .proto files,
// and all fields.
func written() protojson.MarshalOptions {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}
}

// readJSON reads one message; what it does not know, it refuses.
func readJSON(data []byte, m proto.Message) error {
	err := protojson.Unmarshal(data, m)
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
	if strings.Contains(text, "unknown field") {
		text += "; " + fieldsOf(m.ProtoReflect().Descriptor())
	}
	return api.Errorf(codes.InvalidArgument, "JSON of %s: %s", m.ProtoReflect().Descriptor().Name(), text)
}

// fieldsOf names the fields of a message and of the messages directly in it.
func fieldsOf(d protoreflect.MessageDescriptor) string {
	text := string(d.Name()) + " has " + names(d)
	for i := range d.Fields().Len() {
		if inner := d.Fields().Get(i).Message(); inner != nil && !inner.IsMapEntry() {
			text += "; " + string(inner.Name()) + " has " + names(inner)
		}
	}
	return text
}

func names(d protoreflect.MessageDescriptor) string {
	var list []string
	for i := range d.Fields().Len() {
		list = append(list, string(d.Fields().Get(i).Name()))
	}
	return listed(list)
}

// compact takes what protojson puts between the tokens, which it varies.
func compact(body []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, body) != nil {
		return body // was not JSON; it is what protojson has written
	}
	return b.Bytes()
}

// failure is the JSON of an error.
type failure struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"message"`
}

func failureOf(err error) []byte {
	e := kinded(err)
	body, _ := json.Marshal(failure{int(e.Kind), e.Text}) // of two plain fields: cannot fail
	return body
}

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(runtime.HTTPStatusFromCode(kinded(err).Kind))
	w.Write(append(failureOf(err), '\n'))
}

// reply answers a request with a message.
func reply(w http.ResponseWriter, m proto.Message) {
	body, err := written().Marshal(m)
	if err != nil {
		refuse(w, api.Errorf(codes.Internal, "%w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(compact(body), '\n'))
}
