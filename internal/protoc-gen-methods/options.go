package main

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// options reads Weft's options (options.proto) by reflection: the Go of the
// options is not generated yet when this program runs.
type options struct{ types *dynamicpb.Types }

func newOptions(files []*protogen.File) (*options, error) {
	var known protoregistry.Files
	for _, f := range files {
		if err := known.RegisterFile(f.Desc); err != nil {
			return nil, err
		}
	}
	return &options{dynamicpb.NewTypes(&known)}, nil
}

// rules is the value of an option of a message type.
type rules struct{ protoreflect.Message }

// of returns the option weft.v1.NAME of a service, method or message, nil if it
// has none.
func (o *options) of(d protoreflect.Descriptor, name protoreflect.Name) *rules {
	set := d.Options().ProtoReflect()
	b, err := proto.Marshal(set.Interface())
	read := set.New()
	if err == nil {
		err = proto.UnmarshalOptions{Resolver: o.types}.Unmarshal(b, read.Interface())
	}
	if err != nil {
		panic(fmt.Sprintf("options of %s: %v", d.FullName(), err))
	}
	var found *rules
	read.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.FullName() == "weft.v1."+protoreflect.FullName(name) {
			found = &rules{v.Message()}
		}
		return found == nil
	})
	return found
}

func (r *rules) value(name protoreflect.Name) protoreflect.Value {
	return r.Get(r.Descriptor().Fields().ByName(name))
}

func (r *rules) text(name protoreflect.Name) string { return r.value(name).String() }

// enum returns the name of a value, such as ROLE_READ.
func (r *rules) enum(name protoreflect.Name) string {
	f := r.Descriptor().Fields().ByName(name)
	return string(f.Enum().Values().ByNumber(r.Get(f).Enum()).Name())
}

// texts returns the elements of a list of strings.
func (r *rules) texts(name protoreflect.Name) []string {
	var list []string
	for i := range r.value(name).List().Len() {
		list = append(list, r.value(name).List().Get(i).String())
	}
	return list
}

// field returns ", GO: VALUE" for a field of a Go literal, empty if the option
// does not set it.
func (r *rules) field(goName string, name protoreflect.Name) string {
	f := r.Descriptor().Fields().ByName(name)
	if !r.Has(f) {
		return ""
	}
	return fmt.Sprintf(", %s: %#v", goName, r.Get(f).Interface())
}
