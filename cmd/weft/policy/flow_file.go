package policy

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/document"
)

// ReadFlowFile reads flow entries from a file; its errors name the lines.
func ReadFlowFile(path string, stdin io.Reader) ([]*api.FlowEntry, error) {
	path, docs, errs, err := readDocuments(path, stdin, "file of flow entries")
	if err != nil {
		return nil, fmt.Errorf("read flow entries: %w", err)
	}
	r := &fileReader{path: path, errs: errs}
	var flows []*api.FlowEntry
	for _, v := range docs {
		if v.Kind != document.Null {
			flows = append(flows, r.flows(v)...)
		}
	}
	if len(r.errs) == 0 && len(flows) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoFlows)
	}
	return flows, joined(r.errs)
}

// readDocuments reads a file, or standard input if its path is "-", that messages
// call what. It returns how errors are to call it, and what is wrong with it.
func readDocuments(path string, stdin io.Reader, what string) (name string, docs []document.Value, errs []error, err error) {
	var text []byte
	if name = path; path == "-" {
		name = "standard input"
		text, err = document.ReadFrom(stdin, name)
	} else {
		text, err = document.ReadFile(path)
	}
	if err != nil {
		return name, nil, nil, err
	}
	docs, mistakes, _ := document.ReadAll(text, cli.FileLimits(what))
	for _, m := range mistakes {
		errs = append(errs, m.In(name))
	}
	return name, docs, errs, nil
}

// MaxErrors bounds the reported mistakes of a file; nobody reads more.
const MaxErrors = 100

// joined is errors.Join for the mistakes of a file.
func joined(errs []error) error {
	if more := len(errs) - MaxErrors; more > 0 {
		errs = append(errs[:MaxErrors:MaxErrors], fmt.Errorf("and %d more mistakes", more))
	}
	return errors.Join(errs...)
}

// fileReader turns values of a file into messages.
type fileReader struct {
	path string
	errs []error
}

func (r *fileReader) wrong(line int, format string, args ...any) {
	r.errs = append(r.errs, document.Mistake{Line: line, Text: document.Wording(format, args...)}.In(r.path))
}

// message sets the fields of a message, what people call it; it reports whether all is right.
func (r *fileReader) message(m proto.Message, what string, v document.Value) bool {
	if v.Kind == document.Broken {
		return false // already reported
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	var allowed []string
	for i := range fields.Len() {
		allowed = append(allowed, string(fields.Get(i).Name()))
	}
	if len(v.Entries) == 0 {
		r.wrong(v.Line, "want %s: keys with values, of %s", what, strings.Join(allowed, ", "))
		return false
	}
	before := len(r.errs)
	for _, e := range v.Entries {
		d := fields.ByName(protoreflect.Name(e.Key))
		switch {
		case d == nil:
			r.wrong(e.Line, "unknown key %q; allowed: %s", e.Key, strings.Join(allowed, ", "))
		case e.Value.Kind == document.Broken: // already reported
		case e.Value.Kind == document.Null && (d.Message() != nil || d.HasPresence()): // not said
		case d.Message() != nil && !d.IsMap():
			r.below(m, d, e)
		default:
			if want := setField(m, d, e.Value); want != "" {
				r.wrong(e.Value.Line, "%s: want %s", e.Key, want)
			}
		}
	}
	return len(r.errs) == before
}

// below sets a field that is a message, or a list of such.
func (r *fileReader) below(m proto.Message, d protoreflect.FieldDescriptor, e document.Entry) {
	switch to := m.ProtoReflect(); {
	case e.Value.Kind == document.Null:
	case !d.IsList():
		r.message(to.Mutable(d).Message().Interface(), e.Key, e.Value)
	case e.Value.Kind != document.List:
		r.wrong(e.Value.Line, "%s: want a list", e.Key)
	default:
		for _, item := range e.Value.Items {
			r.message(to.Mutable(d).List().AppendMutable().Message().Interface(), "one of "+e.Key, item)
		}
	}
}

// flows reads a list of entries, a mapping with one under flows, or one entry.
func (r *fileReader) flows(v document.Value) (flows []*api.FlowEntry) {
	if v.Kind == document.List {
		for _, item := range v.Items {
			flows = append(flows, r.flows(item)...)
		}
		return flows
	}
	for _, key := range []string{"flows", "flow"} { // as weft get flows prints them
		if list, ok := v.Get(key); ok {
			return r.flows(list)
		}
	}
	f := &api.FlowEntry{Priority: flow.PriorityOperator}
	if !r.message(f, "a flow entry", v) {
		return nil
	}
	f.Owner, f.Cookie, f.Packets, f.Bytes, f.Duration = "", "", 0, 0, 0 // for the controller to say
	if err := checkEntry(f); err != nil {
		r.wrong(v.Line, "%v", err)
		return nil
	}
	return []*api.FlowEntry{f}
}

// setField sets a field of a message to a value; it returns what is wanted
// instead if that cannot be.
func setField(m proto.Message, d protoreflect.FieldDescriptor, v document.Value) string {
	to := m.ProtoReflect()
	switch {
	case d.IsMap():
		if v.Kind != document.Mapping {
			return "keys with values, such as {in_port: 1, eth_type: 0x0800}"
		}
		for _, e := range v.Entries {
			if !e.Value.Scalar() {
				return fmt.Sprintf("one value for %s", e.Key)
			}
			to.Mutable(d).Map().Set(protoreflect.ValueOfString(e.Key).MapKey(), protoreflect.ValueOfString(e.Value.Text))
		}
		return ""
	case d.IsList():
		if v.Kind != document.List {
			return "a list, such as [output:2]"
		}
		for _, item := range v.Items {
			if !item.Scalar() {
				return "a list of texts; put quotes around one with a colon and a blank"
			}
			value, want := scalarOf(d, item.Text)
			if want != "" {
				return "a list, each " + want
			}
			to.Mutable(d).List().Append(value)
		}
		return ""
	}
	if !v.Scalar() {
		return "one value"
	}
	value, want := scalarOf(d, v.Text)
	if want == "" {
		to.Set(d, value)
	}
	return want
}

// scalarOf returns what a text says for a field, or for an item of a list, or what is
// wanted instead.
func scalarOf(d protoreflect.FieldDescriptor, text string) (value protoreflect.Value, want string) {
	var err error
	switch d.Kind() {
	case protoreflect.BoolKind:
		var b bool
		b, err = strconv.ParseBool(text)
		value, want = protoreflect.ValueOfBool(b), "true or false"
	case protoreflect.Uint32Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 0, 32)
		value, want = protoreflect.ValueOfUint32(uint32(n)), "a whole number from 0 to 4294967295"
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		var n int64
		n, err = strconv.ParseInt(text, 0, 32)
		value, want = protoreflect.ValueOfInt32(int32(n)), "a whole number from -2147483648 to 2147483647"
	case protoreflect.Uint64Kind:
		var n uint64
		n, err = strconv.ParseUint(text, 0, 64)
		value, want = protoreflect.ValueOfUint64(n), "a whole number"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		var n int64
		n, err = strconv.ParseInt(text, 0, 64)
		value, want = protoreflect.ValueOfInt64(n), "a whole number"
	case protoreflect.DoubleKind:
		var n float64
		n, err = strconv.ParseFloat(text, 64)
		value, want = protoreflect.ValueOfFloat64(n), "a number"
	default:
		value = protoreflect.ValueOfString(text)
	}
	if err == nil {
		want = ""
	}
	return value, want
}
