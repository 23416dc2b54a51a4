package docs

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// TestEverythingInTheAPIIsDescribed: every message, field, enumeration, value,
// service and method of the .proto files has a comment of its own, for people
// and for what is generated from them.
func TestEverythingInTheAPIIsDescribed(t *testing.T) {
	comments, total := protoComments(t), 0
	want := func(f protoreflect.FileDescriptor, name string) {
		if total++; strings.TrimSpace(comments[name]) == "" {
			t.Errorf("api/%s: %s has no comment; say what it is, its shape and unit, and what an error means", f.Path(), name)
		}
	}
	enums := func(f protoreflect.FileDescriptor, list protoreflect.EnumDescriptors) {
		for i := range list.Len() {
			e := list.Get(i)
			want(f, string(e.Name()))
			for j := range e.Values().Len() {
				want(f, string(e.Name())+"."+string(e.Values().Get(j).Name()))
			}
		}
	}
	var messages func(f protoreflect.FileDescriptor, list protoreflect.MessageDescriptors)
	messages = func(f protoreflect.FileDescriptor, list protoreflect.MessageDescriptors) {
		for i := range list.Len() {
			m := list.Get(i)
			if m.IsMapEntry() {
				continue
			}
			want(f, string(m.Name()))
			for j := range m.Fields().Len() {
				want(f, string(m.Name())+"."+string(m.Fields().Get(j).Name()))
			}
			enums(f, m.Enums())
			messages(f, m.Messages())
		}
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			want(f, string(s.Name()))
			for j := range s.Methods().Len() {
				want(f, string(s.Name())+"."+string(s.Methods().Get(j).Name()))
			}
		}
		enums(f, f.Enums())
		messages(f, f.Messages())
		return true
	})
	if total < 500 {
		t.Errorf("only %d things to describe were found", total)
	}
}
