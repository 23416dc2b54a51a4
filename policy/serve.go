package policy

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft"
)

// answer registers the handlers of the kind's methods. The error names the one whose messages
// do not have the forms that Kind describes.
func (p *Policy[M, T]) answer() error {
	var object M
	var none T
	is := object.ProtoReflect().Descriptor().FullName()
	field := func(m any, want func(protoreflect.FieldDescriptor) bool) protoreflect.FieldDescriptor {
		fields := m.(proto.Message).ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if want(fields.Get(i)) {
				return fields.Get(i)
			}
		}
		return nil
	}
	objects := func(list bool) func(protoreflect.FieldDescriptor) bool {
		return func(f protoreflect.FieldDescriptor) bool {
			return f.IsList() == list && f.Message() != nil && f.Message().FullName() == is
		}
	}
	named := func(name protoreflect.Name, kind protoreflect.Kind) func(protoreflect.FieldDescriptor) bool {
		return func(f protoreflect.FieldDescriptor) bool { return f.Name() == name && f.Kind() == kind }
	}

	req, resp := p.kind.Set.NewMessages()
	set := field(req, objects(false))
	if _, ok := resp.(M); set == nil || !ok {
		return fmt.Errorf("%s: want a field with the %s, which it returns", p.kind.Set.MethodName(), p.kind.What)
	}
	weft.HandleAny(p.env, p.kind.Set, func(ctx context.Context, req any) (any, error) {
		old, now, err := p.Set(ctx, get(req, set).Message().Interface().(M))
		if err != nil {
			return nil, err
		}
		p.settle(ctx, old != now)
		return p.status(now), nil
	})

	req, resp = p.kind.Delete.NewMessages()
	gone, deleted := field(req, named("name", protoreflect.StringKind)), field(resp, named("deleted", protoreflect.BoolKind))
	if gone == nil || deleted == nil {
		return fmt.Errorf("%s: want the field name, and deleted in the answer", p.kind.Delete.MethodName())
	}
	weft.HandleAny(p.env, p.kind.Delete, func(ctx context.Context, req any) (any, error) {
		old, err := p.Delete(ctx, get(req, gone).String())
		if err != nil {
			return nil, err
		}
		p.settle(ctx, old != none)
		_, resp := p.kind.Delete.NewMessages()
		resp.(proto.Message).ProtoReflect().Set(deleted, protoreflect.ValueOfBool(old != none))
		return resp, nil
	})

	req, resp = p.kind.List.NewMessages()
	only, all := field(req, named("name", protoreflect.StringKind)), field(resp, objects(true))
	if all == nil {
		return fmt.Errorf("%s: want a list of %s in the answer", p.kind.List.MethodName(), p.kind.Many)
	}
	weft.HandleAny(p.env, p.kind.List, func(_ context.Context, req any) (any, error) {
		name := ""
		if only != nil {
			name = get(req, only).String()
		}
		_, resp := p.kind.List.NewMessages()
		list := resp.(proto.Message).ProtoReflect().Mutable(all).List()
		for _, o := range p.list(name) {
			list.Append(protoreflect.ValueOfMessage(p.status(o).ProtoReflect()))
		}
		return resp, nil
	})
	return nil
}

func get(m any, f protoreflect.FieldDescriptor) protoreflect.Value {
	return m.(proto.Message).ProtoReflect().Get(f)
}
