package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"weft/api"
)

// readFlowFile reads flow entries from a file; its errors name the lines.
func readFlowFile(path string, stdin io.Reader) ([]*api.FlowEntry, error) {
	var text []byte
	var err error
	if path == "-" {
		path = "standard input"
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read flow entries: %w", err)
	}
	r := &flowReader{path: path}
	flows := r.read(text)
	if len(r.errs) == 0 && len(flows) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNoFlows)
	}
	return flows, errors.Join(r.errs...)
}

// flowReader turns YAML, of which JSON is a part, into flow entries.
type flowReader struct {
	path string
	errs []error
}

func (r *flowReader) wrong(n ast.Node, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.path, n.GetToken().Position.Line, fmt.Sprintf(format, args...)))
}

func (r *flowReader) read(text []byte) (flows []*api.FlowEntry) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		err = fmt.Errorf("%s: not well-formed YAML or JSON: %w", r.path, err)
		if e := yaml.Error(nil); errors.As(err, &e) && e.GetToken() != nil {
			err = fmt.Errorf("%s:%d: not well-formed YAML or JSON: %s", r.path, e.GetToken().Position.Line, e.GetMessage())
		}
		r.errs = append(r.errs, err)
		return nil
	}
	for _, d := range file.Docs {
		if d.Body != nil {
			flows = append(flows, r.list(d.Body)...)
		}
	}
	return flows
}

// list reads a list of entries, a mapping with one under flows, or one entry.
func (r *flowReader) list(n ast.Node) (flows []*api.FlowEntry) {
	if list, ok := n.(*ast.SequenceNode); ok {
		for _, v := range list.Values {
			flows = append(flows, r.list(v)...)
		}
		return flows
	}
	keys := mapping(n)
	if keys == nil {
		r.wrong(n, "want a flow entry: keys with values, such as dpid, priority, match, actions")
		return nil
	}
	for _, k := range keys {
		if k.key == "flows" || k.key == "flow" { // as weft get flows prints them
			return r.list(k.value)
		}
	}
	if f := r.entry(n, keys); f != nil {
		return []*api.FlowEntry{f}
	}
	return nil
}

// pair is one key with its value.
type pair struct {
	key   string
	node  ast.Node // of the key
	value ast.Node
}

// mapping returns the pairs of a mapping, nil if it is none.
func mapping(n ast.Node) (pairs []pair) {
	var list []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		list = n.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{n}
	}
	for _, v := range list {
		pairs = append(pairs, pair{v.Key.GetToken().Value, v.Key, v.Value})
	}
	return pairs
}

// scalar returns the text of a value as it is written, false if it is a list or
// a mapping.
func scalar(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode:
		return "", false
	}
	return n.GetToken().Value, true
}

// entry reads one entry and checks it.
func (r *flowReader) entry(n ast.Node, keys []pair) *api.FlowEntry {
	f := &api.FlowEntry{Priority: defaultPriority}
	fields := f.ProtoReflect().Descriptor().Fields()
	before := len(r.errs)
	for _, k := range keys {
		d := fields.ByName(protoreflect.Name(k.key))
		switch {
		case d == nil:
			var allowed []string
			for i := range fields.Len() {
				allowed = append(allowed, string(fields.Get(i).Name()))
			}
			r.wrong(k.node, "unknown key %q; allowed: %s", k.key, strings.Join(allowed, ", "))
		default:
			if want := setField(f, d, k.value); want != "" {
				r.wrong(k.value, "%s: want %s", k.key, want)
			}
		}
	}
	if len(r.errs) > before {
		return nil
	}
	f.Owner, f.Cookie, f.Packets, f.Bytes, f.Duration = "", "", 0, 0, 0 // for the controller to say
	if _, _, err := f.Entry(); err != nil {
		r.wrong(n, "%v", err)
		return nil
	}
	return f
}

// setField sets a field of a message to a value; it returns what is wanted
// instead if that cannot be.
func setField(m proto.Message, d protoreflect.FieldDescriptor, n ast.Node) string {
	to := m.ProtoReflect()
	switch {
	case d.IsMap():
		pairs := mapping(n)
		if pairs == nil && !empty(n) {
			return "keys with values, such as {in_port: 1, eth_type: 0x0800}"
		}
		for _, p := range pairs {
			text, ok := scalar(p.value)
			if !ok {
				return fmt.Sprintf("one value for %s", p.key)
			}
			to.Mutable(d).Map().Set(protoreflect.ValueOfString(p.key).MapKey(), protoreflect.ValueOfString(text))
		}
		return ""
	case d.IsList():
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			return "a list, such as [output:2]"
		}
		for _, v := range list.Values {
			text, ok := scalar(v)
			if !ok {
				return "a list of texts; put quotes around one with a colon and a blank"
			}
			to.Mutable(d).List().Append(protoreflect.ValueOfString(text))
		}
		return ""
	}
	text, ok := scalar(n)
	if !ok {
		return "one value"
	}
	switch d.Kind() {
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return "true or false"
		}
		to.Set(d, protoreflect.ValueOfBool(b))
	case protoreflect.Uint32Kind:
		v, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return "a whole number from 0 to 4294967295"
		}
		to.Set(d, protoreflect.ValueOfUint32(uint32(v)))
	case protoreflect.Uint64Kind:
		v, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return "a whole number"
		}
		to.Set(d, protoreflect.ValueOfUint64(v))
	case protoreflect.DoubleKind:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "a number"
		}
		to.Set(d, protoreflect.ValueOfFloat64(v))
	default:
		to.Set(d, protoreflect.ValueOfString(text))
	}
	return ""
}

// empty reports whether a node is {}.
func empty(n ast.Node) bool {
	m, ok := n.(*ast.MappingNode)
	return ok && len(m.Values) == 0
}
